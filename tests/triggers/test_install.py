"""Installing cron triggers: in a real crontab with a real cron, as systemd, launchd and Kubernetes
read them; installing twice changes nothing, and removing leaves what others wrote."""

from __future__ import annotations

import json
import os
import plistlib
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path

import kubernetes_validate
import pytest
from patience import eventually
from worlds import SHARED, WORLDS, World

from sprat.config import schedule
from sprat.config.trigger import Trigger, checked
from sprat.core.errors import InvalidInput
from sprat.core.model import LIVE
from sprat.manifests import triggers
from sprat.manifests.plan import ManifestPlan
from sprat.store.store import Store
from sprat.triggers import crontab, install, launchd, registry, systemd

URL = "postgresql://user:pa%73s@host/db"
OTHERS = "MAILTO=me\n5 4 * * * /usr/bin/other # sprat is a fish\n"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    return tmp_path


def entry(name: str = "a", cron: str = "*/5 * * * *", zone: str = "UTC") -> install.Entry:
    command = (sys.executable, "-m", "sprat", "triggers", "tick", name, "--wait", "30")
    return install.Entry(name=name, schedule=cron, timezone=zone, command=command)


def cron(name: str, **about: object) -> Trigger:
    values = {"type": "cron", "schedule": "* * * * *", **about}
    return Trigger(name=name, **values)  # type: ignore[arg-type]


def test_each_cron_trigger_is_one_entry(store: Store) -> None:
    with pytest.raises(InvalidInput, match="no cron trigger"):
        install.entries(store)
    registry.save(store, cron("b", schedule="@hourly"))
    registry.save(store, cron("a"))
    registry.save(store, Trigger(name="c", type="lambda"))
    found = install.entries(store)
    assert [(one.name, one.schedule) for one in found] == [("a", "* * * * *"), ("b", "0 * * * *")]
    assert [one.name for one in install.entries(store, every_minute=True)] == ["all"]


def test_a_machine_also_gets_an_entry_that_checks_all_pools_at_boot(store: Store) -> None:
    [boot] = install.on_a_machine(store)
    assert boot.command[1:5] == ("-m", "sprat", "check", "--all")
    assert [one.name for one in install.on_a_machine(store, every_minute=True)] == [
        "all",
        boot.name,
    ]
    registry.save(store, cron("a"))
    assert [one.name for one in install.on_a_machine(store)] == ["a", boot.name]
    with pytest.raises(InvalidInput):
        checked({"name": boot.name, "type": "lambda"})  # a trigger of this name would replace it


# -- crontab ------------------------------------------------------------------------------------


def test_lines_hold_no_secret_and_no_bare_percent_sign(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/50%")
    [line] = crontab.lines([entry()], URL)
    assert line.startswith("*/5 * * * * set -a; . ")
    assert "pa%73s" not in line
    assert r"/home/50\%" in line
    assert line.replace(r"\%", "").count("%") == 0


def test_installing_twice_changes_nothing_and_others_lines_stay() -> None:
    once = crontab.merged(OTHERS, crontab.lines([entry("a"), entry("b")], URL), URL)
    assert once.startswith(OTHERS)
    assert len(once.splitlines()) == 4
    assert crontab.merged(once, crontab.lines([entry("a"), entry("b")], URL), URL) == once
    both = crontab.merged(once, crontab.lines([entry("a")], "sqlite:////x"), "sqlite:////x")
    assert len(both.splitlines()) == 5
    assert crontab.merged(both, [], "sqlite:////x") == once
    assert crontab.merged(once, [], URL) == OTHERS


def test_a_zone_that_is_not_the_machines_is_looked_at_every_minute(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        nine = entry(cron="0 9 * * *", zone="Europe/Berlin")
        assert nine.local_schedule() == "0 9 * * *"
        assert nine.replace(timezone="Europe/Vienna").local_schedule() == "0 9 * * *"
        assert nine.replace(timezone="Africa/Lagos").local_schedule() == "* * * * *"
        assert nine.replace(timezone="UTC").local_schedule() == "* * * * *"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_the_file_with_the_url_is_for_its_owner_and_a_shell_reads_it(home: Path) -> None:
    path, text = install.environment_file(URL)
    install.write({path: text})
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert path.startswith(str(home))
    said = subprocess.check_output(["/bin/sh", "-c", f"set -a; . {path}; env"], text=True)
    assert f"SPRAT_URL={URL}" in said.splitlines()
    with pytest.raises(InvalidInput, match="quote"):
        install.environment_file("sqlite:////it's")


# -- a real cron --------------------------------------------------------------------------------

# Cron has one spool a machine: this one is seen only by the processes of the test.
PRIVATE = """\
set -eu
mkdir -p "$PLACE/spool/crontabs" "$PLACE/empty" "$PLACE/run"
mount --bind "$PLACE/spool" /var/spool/cron
mount --bind "$PLACE/empty" /etc/cron.d
mount --bind "$PLACE/run" /run
[ ! -e /etc/crontab ] || mount --bind /dev/null /etc/crontab
echo '5 4 1 1 * true' | crontab -
"$@"
"""


def may_unshare() -> bool:
    if os.getuid() or not shutil.which("unshare"):
        return False
    probe = "mkdir -p /var/spool/cron && mount --bind /var/spool/cron /var/spool/cron"
    done = subprocess.run(["unshare", "-m", "sh", "-c", probe], capture_output=True, check=False)
    return done.returncode == 0


@pytest.fixture
def with_cron(home: Path) -> Callable[..., list[str]]:
    """A command line that runs a program where there is a crontab of its own."""
    packages = Path(__file__).parents[2] / "tools" / "packages"
    if not may_unshare() or subprocess.run([packages, "cron"], check=False).returncode:
        pytest.skip("needs root, mount namespaces and Debian's cron")
    os.environ["PLACE"] = str(home)
    return lambda *command: ["unshare", "-m", "sh", "-c", PRIVATE, "sh", *command]


@contextmanager
def running_cron(
    with_cron: Callable[..., list[str]], world: World, place: Path
) -> Iterator[subprocess.Popen[bytes]]:
    """A cron in which the triggers of a store are installed."""
    script = f"{sys.executable} -m sprat triggers install --cron && exec cron -f"
    env = {**os.environ, "SPRAT_URL": world.url, "PLACE": str(place), "HOME": str(place)}
    running = subprocess.Popen(with_cron("sh", "-c", script), env=env, start_new_session=True)
    try:
        yield running
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()


@pytest.mark.timeout(240)
def test_real_cron_fires_an_installed_trigger(
    home: Path, with_cron: Callable[..., list[str]]
) -> None:
    """A full minute has to come: one wait for all stores."""
    with ExitStack() as ends:
        crons = {}
        for name in SHARED:
            place = home / name
            place.mkdir()
            world = WORLDS[name](place)
            ends.callback(world.close)
            command = ["/bin/sh", "-c", f"date >> {place}/fired"]
            registry.save(world.open(), cron("minutely", command=command))
            crons[place / "fired"] = (
                world,
                ends.enter_context(running_cron(with_cron, world, place)),
            )
        eventually(lambda: all(map(has_a_line, crons)), crons, 180)
        for fired, (world, running) in crons.items():
            assert running.poll() is None, "cron ended"
            note = registry.last_due(world.opened[0], "minutely")
            assert note is not None
            assert note[0] % 60 == 0
            assert len(fired.read_text().splitlines()) == 1


def has_a_line(path: Path) -> bool:
    return path.exists() and path.read_text().endswith("\n")


@pytest.mark.timeout(240)
def test_real_cron_recovers_a_pool_when_the_machine_starts(
    shared: World, home: Path, with_cron: Callable[..., list[str]]
) -> None:
    store = shared.open()
    pool = store.pool("papers")
    pool.configure(command=["cat"], start_on_push=False, max_workers=2, idle_seconds=0.1)
    items = pool.push_many([1, 2, 3])
    with running_cron(with_cron, shared, home):
        eventually(lambda: pool.counts().done == len(items), pool.counts, 180)
    eventually(lambda: not store.workers.list(status=LIVE, pool_id="papers"))


def test_a_real_crontab_gets_our_lines_and_gives_them_back(
    shared: World, home: Path, with_cron: Callable[..., list[str]]
) -> None:
    store = shared.open()
    registry.save(store, cron("one"))
    registry.save(store, cron("two", schedule="@daily"))
    sprat = f"{sys.executable} -m sprat triggers install --cron"
    steps = [
        f"{sprat} --json",
        "crontab -l",
        sprat,
        "crontab -l",
        f"{sprat} --remove",
        "crontab -l",
    ]
    script = "\necho ---\n".join(steps)
    env = {**os.environ, "SPRAT_URL": shared.url, "PLACE": str(home)}
    said = subprocess.check_output(with_cron("sh", "-ec", script), env=env, text=True, timeout=100)
    done, first, _, second, removed, last = said.split("---\n")
    assert json.loads(done)["entries"] == ["one", "two", "at:boot"]
    assert len(first.splitlines()) == 4
    assert re.search(r"^@reboot .* -m sprat check --all --wait 300 # sprat ", first, re.MULTILINE)
    assert second == first
    assert removed == "3 entries removed from your crontab\n"
    assert last == "5 4 1 1 * true\n"
    assert not list((home / ".config" / "sprat").iterdir())


# -- systemd ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/15 * * * *", ["*-*-* *:0,15,30,45:00 UTC"]),
        ("30 2 * * *", ["*-*-* 2:30:00 UTC"]),
        ("0 9 * * 1-5", ["Mon,Tue,Wed,Thu,Fri *-*-* 9:0:00 UTC"]),
        ("0 0 1 1,7 *", ["*-1,7-1 0:0:00 UTC"]),
        ("0 12 13 * FRI", ["*-*-13 12:0:00 UTC", "Fri *-*-* 12:0:00 UTC"]),
    ],
)
def test_a_schedule_as_systemd_writes_it(cron: str, expected: list[str]) -> None:
    assert systemd.calendars(cron, "UTC") == expected


needs_systemd = pytest.mark.skipif(
    not shutil.which("systemd-analyze"), reason="there is no systemd-analyze here"
)


@needs_systemd
@pytest.mark.parametrize("cron", ["*/7 * * * *", "5 3-9/2 * 1,6 MON", "0 0 31 * *", "0 12 13 * 5"])
def test_systemd_reads_the_times_that_cron_means(cron: str) -> None:
    moment = datetime.now(UTC).timestamp()
    base = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    found = set()
    for calendar in systemd.calendars(cron, "UTC"):
        said = subprocess.check_output(
            ["systemd-analyze", "calendar", "--iterations=6", f"--base-time={base}", calendar],
            text=True,
            env={**os.environ, "TZ": "UTC", "LC_ALL": "C"},
        )
        times = [line.split(": ", 1)[1] for line in said.splitlines() if _tells_a_time(line)]
        found |= {datetime.strptime(t, "%a %Y-%m-%d %H:%M:%S UTC").timestamp() for t in times}
    expected = []
    for _ in range(6):
        due = schedule.following(cron, "UTC", moment)
        assert due is not None
        expected.append(datetime.fromtimestamp(due, UTC).replace(tzinfo=None).timestamp())
        moment = due
    assert sorted(found)[:6] == expected


def _tells_a_time(line: str) -> bool:
    return line.strip().startswith(("Next elapse:", "Iteration #", "Iter. #"))


@needs_systemd
def test_systemd_accepts_the_units(home: Path) -> None:
    done = systemd.add([entry("a"), entry("b", "0 0 * * *"), install.at_boot()], URL)
    assert done.entries == ("a", "b", "at:boot")
    units = [path for path in done.files if path.endswith((".timer", ".service"))]
    assert len(units) == 6
    said = subprocess.run(
        ["systemd-analyze", "verify", "--user", *units],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(home)},
    )
    assert "sprat" not in said.stderr, said.stderr


def test_units_are_replaced_and_removed(home: Path) -> None:
    units = home / ".config" / "systemd" / "user"
    systemd.add([entry("a"), entry("b")], URL)
    before = {path.name: path.read_text() for path in units.glob("sprat-*")}
    systemd.add([entry("a"), entry("b")], URL)
    assert {path.name: path.read_text() for path in units.glob("sprat-*")} == before
    (units / "other.timer").touch()
    systemd.add([entry("a")], URL)
    assert len(list(units.glob("sprat-*"))) == 2
    assert "pa%73s" not in "".join(path.read_text() for path in units.glob("sprat-*"))
    assert systemd.remove(URL).entries == ("a",)
    assert [path.name for path in units.rglob("*") if not path.is_dir()] == ["other.timer"]


def test_systemd_checks_all_pools_at_boot_and_lets_the_workers_live(home: Path) -> None:
    systemd.add([install.at_boot()], URL)
    units = home / ".config" / "systemd" / "user"
    [timer], [service] = units.glob("*.timer"), units.glob("*.service")
    assert "\nOnBootSec=10\n" in timer.read_text()
    assert "OnCalendar" not in timer.read_text()
    assert '"check" "--all"' in service.read_text()
    assert "\nKillMode=process\n" in service.read_text()
    assert systemd.remove(URL).entries == ("at:boot",)
    assert not list(units.iterdir())


# -- launchd and Kubernetes ---------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("* * * * *", [{}]),
        ("*/30 * * * *", [{"Minute": 0}, {"Minute": 30}]),
        ("0 9 * * 1", [{"Minute": 0, "Hour": 9, "Weekday": 1}]),
        (
            "0 9 13 * 5",
            [{"Minute": 0, "Hour": 9, "Day": 13}, {"Minute": 0, "Hour": 9, "Weekday": 5}],
        ),
        ("*/2 */2 */2 * *", [{}]),
    ],
)
def test_a_schedule_as_launchd_writes_it(cron: str, expected: list[dict[str, int]]) -> None:
    assert launchd.intervals(cron) == expected


def test_property_lists_are_written_and_removed(home: Path) -> None:
    done = launchd.add([entry("a"), entry("b", "0 9 * * *"), install.at_boot()], URL)
    agents = home / "Library" / "LaunchAgents"
    assert len(list(agents.iterdir())) == 3
    boot = plistlib.loads((agents / f"sprat.{install.mark(URL)}.at:boot.plist").read_bytes())
    assert boot["RunAtLoad"] is True
    assert "StartCalendarInterval" not in boot
    about = plistlib.loads((agents / f"sprat.{install.mark(URL)}.a.plist").read_bytes())
    assert about["ProgramArguments"][:2] == ["/bin/sh", "-c"]
    assert done.entries == ("a", "b", "at:boot")
    assert sorted(launchd.remove(URL).entries) == ["a", "at:boot", "b"]
    assert list(agents.iterdir()) == []


PLAN = ManifestPlan(image="app:1")
FOUND = [entry("a"), entry("Under_Score", "0 9 * * *", "Europe/Berlin"), entry("x" * 100)]


def test_cron_jobs_have_names_that_fit_and_hold_no_secret() -> None:
    made = triggers.of_store(PLAN, FOUND, URL)
    assert triggers.of_store(PLAN, FOUND, URL) == made
    names = [job["metadata"]["name"] for job in made]
    assert len(set(names)) == 3
    assert all(re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,50}[a-z0-9])?", name) for name in names)
    assert made[1]["spec"]["timeZone"] == "Europe/Berlin"
    assert "pa%73s" not in json.dumps(made)


def test_cron_jobs_are_what_kubernetes_accepts() -> None:
    for job in triggers.of_store(PLAN, FOUND, URL):
        assert kubernetes_validate.validate(job, "1.29", strict=True)


# -- the command --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "one of the arguments --cron --systemd --launchd --kubernetes is required"),
        (("--cron", "--systemd"), "not allowed with argument --cron"),
        (("--kubernetes",), "CronJobs need --image"),
        (("--kubernetes", "--image", "Not an image"), "cannot be an image"),
        (("--cron", "--print", "--remove"), "do not go together"),
        (("--cron", "--remov"), "did you mean --remove?"),
        (("--kubernetes", "--image", "app:1"), "there is no cron trigger to install"),
    ],
)
def test_wrong_words_are_told(shared: World, arguments: tuple[str, ...], said: str) -> None:
    shared.open().pool("papers").configure(max_workers=1)
    done = run(shared.url, *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def run(url: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sprat", "triggers", "install", *arguments],
        env={**os.environ, "SPRAT_URL": url},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("place", ["--cron", "--systemd", "--launchd"])
def test_print_writes_nothing(shared: World, home: Path, place: str) -> None:
    shared.open().pool("papers").configure(max_workers=1)  # and no trigger
    before = sorted(home.rglob("*"))
    done = run(shared.url, place, "--print")
    assert done.returncode == 0
    boot = {"--cron": "@reboot", "--systemd": "OnBootSec=10", "--launchd": "RunAtLoad"}
    assert boot[place] in done.stdout
    files = json.loads(run(shared.url, place, "--print", "--json").stdout)["files"]
    assert all(text in done.stdout for text in files.values())
    assert [p for p in sorted(home.rglob("*")) if "fleet.db" not in p.name] == [
        p for p in before if "fleet.db" not in p.name
    ]


def test_without_a_trigger_the_entry_at_boot_is_installed_and_removed(
    shared: World, home: Path
) -> None:
    shared.open().pool("papers").configure(max_workers=1)
    done = run(shared.url, "--launchd")
    assert (done.returncode, done.stdout.split(" in ")[0]) == (0, "1 entry installed")
    assert done.stderr.startswith("there is no cron trigger: the entry checks all pools when")
    agents = home / "Library" / "LaunchAgents"
    once = {path.name: path.read_text() for path in agents.iterdir()}
    assert run(shared.url, "--launchd").returncode == 0
    assert {path.name: path.read_text() for path in agents.iterdir()} == once
    assert run(shared.url, "--launchd", "--remove").stdout.startswith("1 entry removed from ")
    assert not list(agents.iterdir())


def test_kubernetes_is_printed_for_kubectl(shared: World) -> None:
    registry.save(shared.open(), cron("a"))
    done = run(shared.url, "--kubernetes", "--image", "app:1")
    assert [job["kind"] for job in json.loads(done.stdout)["items"]] == ["CronJob"]
    assert "kubectl apply -f -" in done.stderr
    assert (
        "kubectl delete -f -"
        in run(shared.url, "--kubernetes", "--image", "app:1", "--remove").stderr
    )
