"""Whatever is wrong, the answer is one sentence on stderr and an exit code: never a traceback."""

from __future__ import annotations

import contextlib
import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Together, at_once

from sprat.cli.main import COMMANDS, main
from sprat.store.store import Store

Run = Callable[..., "object"]

# command line, what the sentence has in it
BAD_INPUT = [
    ("push", "the following arguments are required: POOL"),
    ("push numbers", "nothing to push: give JSON, --file or --count"),
    ("push numbers {", "the payload is not JSON"),
    ("push numbers hello", "text needs quotes"),
    ("push numbers NaN", "the payload is not JSON"),
    ("push numbers " + "[" * 100_000, "nested too deeply"),
    ("push numbers 1 2", "'2' is one argument too many"),
    ("push numbers 1 --fiel x", "unknown option --fiel: did you mean --file?"),
    ("push numbers 1 --xyzzy", "unknown option --xyzzy: use"),
    ("push numbers --file nowhere.jsonl", "there is no file nowhere.jsonl"),
    ("push numbers --file .", ". cannot be read: Is a directory"),
    ("push numbers 1 --file jobs.py", "--file brings its own payloads"),
    ("push numbers --file jobs.py", "jobs.py, line 1 is not JSON"),
    ("push numbers --count 0", "it must be a whole number from 1 to 10000000, not '0'"),
    ("push numbers --count many", "it must be a whole number"),
    ("push numbers --count 2 --key k", "--key names one job"),
    ("push numbers 1 --priority high", "invalid int value: 'high'"),
    ("push numbers 1 --priority 9999999999", "priority must be a whole number from"),
    ("push numbers 1 --max-attempts 0", "max_attempts must be a whole number from 1"),
    ("push numbers 1 --max-attempts 2 --max-retries 3", "max_attempts is 2 and max_retries is 3"),
    ("push numbers 1 --max-retries 0", "max_retries must be a whole number from 1"),
    ("push numbers 1 --delay soon", "it must be a time such as 90, 500ms, 5m, 2h or 1d"),
    ("push numbers 1 --delay -5", "it must be a time such as"),
    ("push numbers 1 --tenant=", "the tenant must be 1 to 128 printable characters"),
    (
        "push numbrs 1",
        "no pool 'numbrs': did you mean numbers? (--create makes a new pool)",
    ),
    ("push xyzzy 1", "use broken, nobody, numbers (--create makes a new pool)"),
    ("push numbers --tenant a 1 2", "'2' is one argument too many"),
    ("push bad/name 1", "the pool name 'bad/name' must be"),
    ("push .. 1", "letters, digits, . _ -, not of dots alone"),
    ("workers list --pool numbers", "--pool is an option of `sprat workers drain`, not of this"),
    ("status --url=", "'' is not a store URL: for a file write sqlite:///sprat.db"),
    ("work", "the following arguments are required: POOL"),
    ("work a b", "'b' is one argument too many"),
    ("work numbers --max-jobs x", "it must be a whole number from 0"),
    ("work numbers --max-jobs -1", "it must be a whole number from 0"),
    ("work numbers --idle never", "it must be a time such as"),
    ("work numbers --idle nan", "idle_seconds must be seconds"),
    ("work numbers --isolation vm", "vm"),
    ("work numbers --worker-id", "expected one argument"),
    ("work nubmers", "there is no pool 'nubmers': did you mean numbers?"),
    ("work broken", "the handler gone:f cannot be imported: ModuleNotFoundError"),
    ("work nobody", "the pool has no handler and no command: `sprat apply` gives it one"),
    ("check", "name one POOL, or use --all"),
    ("check xyzzy", "there is no pool 'xyzzy': use broken, nobody, numbers"),
    ("check nobody", "pool nobody has no handler and no command"),
    ("scale nobody --target-workers 1", "pool nobody has no handler and no command"),
    ("check numbers --max-workers ten", "it must be a whole number"),
    ("check numbers --dry", "unknown option --dry: did you mean --dry-run?"),
    ("reap --threshold x", "it must be a time such as"),
    ("reap xyzzy", "there is no pool 'xyzzy'"),
    ("scale numbers", "the following arguments are required: --target-workers"),
    ("scale numbers --target-workers 2.5", "it must be a whole number"),
    ("scale xyzzy --target-workers 1", "there is no pool 'xyzzy'"),
    ("status xyzzy", "there is no pool 'xyzzy'"),
    ("--url fleet.db status", "'fleet.db' is not a store URL"),
    ("--url", "no command behind --url"),
    ("status --url fleet.db", "'fleet.db' is not a store URL: for a file write sqlite:///fleet.db"),
    ("status --url mysql://x", "unknown kind of store 'mysql'"),
    ("status --url memory://", "memory:// is gone when the command ends"),
    ("status --url sqlite:///gone.db", "there is no store gone.db yet"),
    ("status --url sqlite://gone.db", "too few slashes"),
    ("status --url sqlite:///.", "is a directory: name a file in it"),
    ("status --url sqlite:///jobs.py", "is not an SQLite database"),
    ("push numbers 1 --create --url sqlite:///no/such/place.db", "does not exist: create it first"),
    ("status --url", "expected one argument"),
    ("watch xyzzy", "there is no pool 'xyzzy'"),
    ("watch numbers --timeout x", "it must be a time such as"),
    ("jobs", "the following arguments are required: ACTION"),
    ("jobs lst", "invalid choice: 'lst'"),
    ("jobs list", "the following arguments are required: POOL"),
    ("jobs list xyzzy", "there is no pool 'xyzzy'"),
    ("jobs list numbers --status gone", "invalid choice: 'gone'"),
    ("jobs list numbers --limit 0", "it must be a whole number from 1 to 10000"),
    ("jobs list numbers --after gone", "no job has the id 'gone'"),
    ("jobs list numbers --lmit 3", "unknown option --lmit: did you mean --limit?"),
    ("jobs show gone", "no job has the id 'gone'"),
    ("jobs requeue", "name jobs by their ids, or a pool with --all-failed"),
    ("jobs requeue a --all-poisoned numbers", "one of the three"),
    ("jobs cancel gone", "no job has the id 'gone'"),
    ("jobs cancel --all-pending xyzzy", "there is no pool 'xyzzy'"),
    ("jobs purge xyzzy", "there is no pool 'xyzzy'"),
    ("workers show gone", "there is no worker 'gone'"),
    ("workers drain", "name workers by their ids, or --pool"),
    ("workers drain gone", "there is no worker 'gone'"),
    ("workers list --status sleepy", "invalid choice: 'sleepy'"),
    ("explain xyzzy", "there is no pool 'xyzzy'"),
    ("explain -n 0", "it must be a whole number from 1 to 1000"),
    ("pause", "the following arguments are required: POOL"),
    ("pause numbers --for ever", "it must be a time such as"),
    ("resume xyzzy", "there is no pool 'xyzzy'"),
    ("completion tcsh", "invalid choice: 'tcsh'"),
    ("apply gone.yml", "there is no gone.yml: `sprat init` writes one"),
    ("apply .", ". cannot be read: Is a directory"),
    ("apply jobs.py", "jobs.py, line "),
    ("apply empty.yml", "empty.yml names no pools"),
    ("apply typo.yml", "typo.yml, line 3: pools.a has no setting 'max_worker'"),
    ("apply later.yml", "later.yml, line 1, column 11: triggers must be a list"),
    ("apply gone-handler.yml", "pools.a: the handler gone:f cannot be imported"),
    ("apply no-program.yml", "pools.a: there is no program no-such-program"),
    ("apply no-right.yml", "pools.a: ./jobs.py may not be executed: chmod +x ./jobs.py"),
    ("apply no-trigger.yml", "trigger t: there is no program ./nope.sh"),
    ("apply no-trigger-right.yml", "trigger t: ./jobs.py may not be executed: chmod +x ./jobs.py"),
    ("apply no-place.yml", "no/where: No such file or directory"),
    ("init jobs.py", "jobs.py is not a directory"),
    ("keys create --role admin --tenant a/b", "a key's tenant is 1 to 64 letters, digits, _ or -"),
    ("keys list --url http://127.0.0.1:1", "give the URL of the store itself"),
    ("keys create --role admin --url https://127.0.0.1:1", "give the URL of the store itself"),
    ("doctor now", "'now' is one argument too many"),
]

NOBODY = 65534


@pytest.fixture
def world(store: Store, place: Path) -> None:
    store.pool("broken").configure(handler="gone:f", directory=str(place))
    store.pool("nobody").push(1)
    files = {
        "empty.yml": "# nothing\n",
        "typo.yml": "pools:\n  a:\n    max_worker: 3\n",
        "later.yml": "triggers: {}\n",
        "gone-handler.yml": "pools: {a: {handler: 'gone:f'}}\n",
        "no-right.yml": "pools: {a: {command: [./jobs.py]}}\n",
        "no-program.yml": "pools: {a: {command: [no-such-program]}}\n",
        "no-place.yml": "pools: {a: {command: [ls], directory: no/where}}\n",
    }
    for name, program in (("no-trigger", "./nope.sh"), ("no-trigger-right", "./jobs.py")):
        trigger = f"{{name: t, type: cron, schedule: '@daily', command: [{program}]}}"
        files[f"{name}.yml"] = f"triggers: [{trigger}]\n"
    for name, text in files.items():
        (place / name).write_text(text)


def is_one_sentence(said: str) -> bool:
    return said.startswith("sprat: ") and said.count("\n") == 1 and "Traceback" not in said


@pytest.mark.parametrize(("line", "says"), BAD_INPUT, ids=lambda text: text[:50])
def test_bad_input_is_one_sentence(line: str, says: str, sprat: Run, world: None) -> None:
    before = os.getcwd(), list(sys.path)
    try:
        answer = sprat(*line.split())
    finally:
        os.chdir(before[0])
        sys.path[:] = before[1]
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert is_one_sentence(answer.err)


READING = [
    *("work numbers", "check numbers", "reap", "scale numbers --target-workers 1", "status"),
    *("watch numbers", "jobs list numbers", "jobs show x", "jobs purge", "workers list"),
    *("explain", "pause numbers", "resume numbers"),
]


@pytest.mark.parametrize("line", READING)
def test_a_missing_store_is_told_and_not_made(line: str, sprat: Run, place: Path) -> None:
    answer = sprat(*line.split())
    assert (answer.code, answer.out) == (2, "")
    assert "there is no store sprat.db yet" in answer.err
    assert is_one_sentence(answer.err)
    assert not list(place.glob("*.db*"))


@pytest.mark.parametrize("line", ["status", "push numbers 1", "jobs list numbers"])
def test_where_no_store_is_a_wrong_file_is_told_first(line: str, sprat: Run, place: Path) -> None:
    """Or jobs would go to another store than the one that the file means."""
    (place / "sprat.yml").write_text("stor: postgresql://db/jobs\n")
    answer = sprat(*line.split())
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "sprat: sprat.yml, line 1: unknown key 'stor': did you mean store?\n"
    assert not list(place.glob("*.db*"))


@pytest.mark.parametrize("variable", ["SPRAT_MAX_WORKERS", "SPRAT_MIN_WORKERS"])
def test_a_bad_variable_is_one_sentence(
    variable: str, sprat: Run, world: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "-1")
    answer = sprat("check", "numbers")
    assert (answer.code, is_one_sentence(answer.err)) == (2, True)
    assert variable in answer.err


DOUBTS = [
    ("max_workers: 0", "max_workers is 0, so no worker is started for it"),
    ("environment: [NOPE]", "environment names NOPE, which is not set here: jobs run without it"),
]


@pytest.mark.parametrize(("setting", "says"), DOUBTS)
def test_a_doubtful_setting_is_a_warning(
    setting: str, says: str, sprat: Run, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOPE", raising=False)
    (place / "sprat.yml").write_text(f"pools: {{a: {{handler: 'jobs:double', {setting}}}}}\n")
    answer = sprat("apply")
    assert (answer.code, answer.err) == (0, f"sprat: warning: pools.a: {says}\n")
    assert f"warn  a           {says}\n" in sprat("doctor").out
    monkeypatch.setenv("NOPE", "1")
    assert ("NOPE" in sprat("apply").err) is False


def test_the_program_of_a_trigger_is_looked_for_in_its_directory(sprat: Run, place: Path) -> None:
    (place / "sub").mkdir()
    (place / "sub" / "go.sh").write_text("#!/bin/sh\n")
    (place / "sub" / "go.sh").chmod(0o755)
    made = "{name: t, type: TYPE, on: pool_empty, command: [./go.sh], directory: DIRECTORY}"
    text = f"triggers: [{made}]\n".replace("TYPE", "subprocess")
    (place / "t.yml").write_text(text.replace("DIRECTORY", "sub"))
    assert sprat("apply", "t.yml").code == 0
    (place / "t.yml").write_text(text.replace("DIRECTORY", "."))
    assert sprat("apply", "t.yml").code == 2
    assert sprat("apply", "t.yml", "--no-import").code == 0
    (place / "t.yml").write_text("triggers: [{name: t, type: lambda, command: [./go.sh]}]\n")
    assert sprat("apply", "t.yml").code == 0  # it runs in another place


def test_more_workers_than_the_maximum_are_launched_with_a_warning(
    sprat: Run, store: Store
) -> None:
    answer = sprat("scale", "numbers", "--target-workers", "3", "--dry-run")
    assert answer.out.endswith("3 would be launched, 0 would be terminating\n")
    assert answer.err == (
        "sprat: warning: the target 3 is more than max_workers 2: "
        "the next scaling pass may drain the surplus\n"
    )
    assert sprat("scale", "numbers", "--target-workers", "2", "--dry-run").err == ""


def test_a_broken_file_is_told_where_it_matters(sprat: Run, world: None, place: Path) -> None:
    (place / "sprat.yml").write_text("store: [\n")
    answer = sprat("status")
    assert answer.code == 2
    assert "sprat.yml, line" in answer.err
    assert is_one_sentence(answer.err)


@pytest.mark.parametrize("line", ["push numbers -", "push numbers --file -"])
@pytest.mark.parametrize("given", [b"\xff", b"", b"{"])
def test_bad_standard_input_is_one_sentence(line: str, given: bytes, world: None) -> None:
    command = [sys.executable, "-m", "sprat", *line.split()]
    answer = subprocess.run(command, input=given, capture_output=True, check=False)
    if given or line.endswith("numbers -"):
        assert answer.returncode == 2
        assert is_one_sentence(answer.stderr.decode())
    closed = ["sh", "-c", 'exec "$@" <&-', "sh", *command]
    answer = subprocess.run(closed, capture_output=True, check=False)
    assert answer.returncode == 2
    assert "standard input is closed" in answer.stderr.decode()


def status_as_nobody(place: int, together: Together, url: str) -> tuple[int, str]:
    if os.geteuid() == 0:  # root may read everything
        os.seteuid(NOBODY)
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        code = main(["status", "--url", url])
    return code, told.getvalue()


def test_a_forbidden_store_is_unavailable(world: None, place: Path) -> None:
    for above in (place, *place.parents):  # anybody may come this far
        if above.stat().st_uid == os.geteuid():
            above.chmod(above.stat().st_mode | 0o011)
    (place / "sprat.db").chmod(0)
    ((code, complaint),) = at_once(1, status_as_nobody, f"sqlite:///{place}/sprat.db")
    assert (code, is_one_sentence(complaint)) == (1, True)
    assert "Permission denied" in complaint


def test_a_store_that_is_no_file_is_unavailable(sprat: Run, place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as there:
        there.bind("sprat.db")
        answer = sprat("status")
    assert (answer.code, is_one_sentence(answer.err)) == (1, True)


@pytest.mark.parametrize("command", [name for name in COMMANDS if name != "demo"])
def test_help_is_no_error(command: str, sprat: Run) -> None:
    answer = sprat(command, "--help")
    assert (answer.code, answer.err) == (0, "")
    assert answer.out.startswith(f"usage: sprat {command}")


@pytest.mark.parametrize("line", ["status", "jobs list numbers", "doctor"])
def test_a_reader_that_goes_away_is_silent(line: str, world: None) -> None:
    read, write = os.pipe()
    os.close(read)
    answer = subprocess.run(
        [sys.executable, "-m", "sprat", *line.split()],
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (answer.returncode, answer.stderr) == (141, b"")


def test_an_interrupted_watch_leaves_quietly(store: Store) -> None:
    store.pool("numbers").push(1)
    watch = subprocess.Popen(
        [sys.executable, "-m", "sprat", "watch", "numbers"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with watch:
        assert watch.stderr
        assert watch.stderr.readline().startswith("0/1 done")
        watch.send_signal(signal.SIGINT)
        out, err = watch.communicate(timeout=30)
    assert (watch.returncode, out) == (130, "")
    assert "Traceback" not in err
