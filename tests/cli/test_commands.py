"""Each command does what it says, and says it again as JSON."""

from __future__ import annotations

import fcntl
import json
import os
import re
import stat
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from worlds import World

from sprat.core import model
from sprat.scaling import queue_depth
from sprat.store.store import Store

Run = Callable[..., "object"]


def enrol(store: Store, worker_id: str, **about: object) -> model.WorkerRecord:
    about = {"pool_id": "numbers", "lease_seconds": 600.0, **about}
    return store.workers.register(model.WorkerRegistration(worker_id=worker_id, **about))


# -- init, apply --------------------------------------------------------------------------------


def test_init_writes_a_project_that_applies(sprat: Run, tmp_path: Path) -> None:
    made = sprat("init", "new/project")
    assert (made.code, made.err) == (0, "")
    assert "sprat apply" in made.out
    assert "cd new/project" in made.out
    os.chdir("new/project")
    applied = sprat("apply", "--json")
    assert applied.code == 0
    assert "handler" in applied.data["pools"]["numbers"]


def test_init_overwrites_nothing(sprat: Run, place: Path) -> None:
    (place / "jobs.py").write_text("mine = 1\n")
    (place / "sprat.yml").unlink()
    assert sprat("init", "--json").data == {
        "directory": ".",
        "written": ["sprat.yml"],
        "kept": ["jobs.py"],
    }
    assert (place / "jobs.py").read_text() == "mine = 1\n"
    assert "left as it is" in sprat("init").out


def test_apply_says_what_changed_and_is_idempotent(sprat: Run, place: Path) -> None:
    first = sprat("apply")
    assert first.out.startswith("numbers: changed: handler")
    assert sprat("apply").out == "numbers: unchanged\n"
    text = (place / "sprat.yml").read_text()
    (place / "sprat.yml").write_text(text.replace("max_workers: 2", "max_workers: 5"))
    assert sprat("apply", "--dry-run").out == "numbers: would be changed: max_workers\n"
    assert sprat("apply").out == "numbers: changed: max_workers\n"
    (place / "sprat.yml").write_text(text.replace("    max_workers: 2\n", ""))
    assert sprat("apply").out == "numbers: changed: max_workers\n"  # back to the default
    assert sprat("apply", "--json").data["pools"] == {"numbers": []}


def test_a_dry_apply_makes_no_store(sprat: Run, place: Path) -> None:
    assert "would be changed" in sprat("apply", "--dry-run").out
    assert not (place / "sprat.db").exists()


def test_apply_puts_the_store_beside_its_file(sprat: Run, place: Path) -> None:
    (place / "sub").mkdir()
    (place / "sprat.yml").rename(place / "sub" / "sprat.yml")
    assert sprat("apply", "sub/sprat.yml", "--no-import").code == 0
    assert (place / "sub" / "sprat.db").exists()


# -- push ---------------------------------------------------------------------------------------


def test_push_prints_the_id(sprat: Run, store: Store) -> None:
    answer = sprat("push", "numbers", '{"n": 1}')
    item = store.get(answer.out.strip())
    assert (answer.code, answer.err, item.data) == (0, "", {"n": 1})


def test_push_takes_every_option(sprat: Run, store: Store) -> None:
    options = "--priority 3 --delay 1h --tenant acme --group gpu --key k1 --max-attempts 5 --json"
    answer = sprat("push", "numbers", "[1]", *options.split())
    (item_id,) = answer.data["ids"]
    item = store.get(item_id)
    assert (item.priority, item.tenant, item.group, item.key) == (3, "acme", "gpu", "k1")
    assert item.max_retries == 5
    assert item.run_at
    assert sprat("push", "numbers", "[1]", "--key", "k1").out.strip() == item_id


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--count", "3"], [{"n": 1}, {"n": 2}, {"n": 3}]),
        (['"x"', "--count", "2"], ["x", "x"]),
    ],
)
def test_push_counts(flags: list[str], expected: list[object], sprat: Run, store: Store) -> None:
    answer = sprat("push", "numbers", *flags)
    assert answer.out == f"pushed {len(expected)} jobs to numbers\n"
    assert [item.data for item in store.pool("numbers").items()] == expected


def test_push_reads_a_file_in_chunks(sprat: Run, store: Store, place: Path) -> None:
    lines = "".join(f'{{"n": {n}}}\n' for n in range(10_050))
    (place / "jobs.jsonl").write_text(lines + "\n")
    answer = sprat("push", "numbers", "--file", "jobs.jsonl")
    assert answer.out == "pushed 10,050 jobs to numbers\n"
    assert store.pool("numbers").size() == 10_050


@pytest.mark.parametrize("line", ["{", "nan?", '{"a": NaN}', "[" * 5000, "\udcff"])
def test_one_bad_line_and_nothing_is_pushed(
    line: str, sprat: Run, store: Store, place: Path
) -> None:
    text = "1\n" * 10_001 + line
    (place / "jobs.jsonl").write_bytes(text.encode(errors="surrogateescape"))
    answer = sprat("push", "numbers", "--file", "jobs.jsonl")
    assert (answer.code, answer.out) == (2, "")
    assert "jobs.jsonl, line 10002" in answer.err
    assert store.pool("numbers").size() == 0


def test_push_reads_standard_input(process: Run, store: Store) -> None:
    assert process("push", "numbers", "-", input='{"n": 1}').code == 0
    assert process("push", "numbers", "--file", "-", input="1\n2\n").out.startswith("pushed 2")
    bad = process("push", "numbers", "--file", "-", input="1\nx\n")
    assert (bad.code, "standard input, line 2 is not JSON" in bad.err) == (2, True)
    many = process("push", "numbers", "-", input="1\n2\n")
    assert (many.code, "one payload a line, say --file -" in many.err) == (2, True)
    assert store.pool("numbers").size() == 3


@pytest.mark.parametrize(("poison", "state"), [(True, "failed"), (False, "cancelled")])
def test_the_key_of_a_job_that_will_not_run_again_is_told(
    poison: bool, state: str, sprat: Run, store: Store
) -> None:
    pool = store.pool("numbers")
    item_id = pool.push(1, key="k")
    assert sprat("push", "numbers", "1", "--key", "k").err == ""
    if poison:
        item = pool.claim(enrol(store, "w1"))
        assert item
        pool.fail(item, "bad", poison=True)
    else:
        pool.cancel(item_id)
    answer = sprat("push", "numbers", "1", "--key", "k")
    assert (answer.code, answer.out) == (0, f"{item_id}\n")
    assert answer.err == (
        f"sprat: the job with this key is {state} already, nothing was pushed: "
        f"`sprat jobs retry {item_id}` runs it again\n"
    )


@pytest.mark.parametrize("payload", ['{"n":1}', "-5", "1"])
def test_the_payload_may_stand_behind_the_options(payload: str, sprat: Run, store: Store) -> None:
    answer = sprat("push", "numbers", "--group", "gpu", payload, "--json")
    (item_id,) = answer.data["ids"]
    assert store.get(item_id).data == json.loads(payload)
    assert store.get(item_id).group == "gpu"


def test_push_makes_a_pool_only_when_it_is_asked_to(sprat: Run, store: Store) -> None:
    refused = sprat("push", "numbrs", "--count", "3")
    assert (refused.code, refused.out) == (2, "")
    assert store.pools() == ["numbers"]
    answer = sprat("push", "nightly", "1", "--create", "--json")
    assert (answer.code, answer.data["count"]) == (0, 1)
    assert answer.err == (
        "sprat: pool nightly has no handler and no command yet: `sprat apply` gives it one\n"
    )
    assert sprat("push", "nightly", "2").code == 0
    assert store.pools() == ["nightly", "numbers"]


def test_push_makes_a_store_only_when_it_is_asked_to(sprat: Run, place: Path) -> None:
    (place / "sprat.yml").unlink()
    refused = sprat("push", "numbers", "1")
    assert (refused.code, "`sprat push --create` makes it" in refused.err) == (2, True)
    assert not (place / "sprat.db").exists()
    assert sprat("push", "numbers", "1", "--create").code == 0


@pytest.mark.parametrize(
    "line",
    [
        "--url sqlite:///sprat.db --json status",
        "--json --url=sqlite:///sprat.db status",
        "--json jobs list numbers --url sqlite:///sprat.db",
    ],
)
def test_the_store_and_json_may_stand_before_the_command(
    line: str, sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_URL", "sqlite:///gone.db")
    answer = sprat(*line.split())
    assert (answer.code, answer.err) == (0, "")
    assert {"pools", "items"} & set(answer.data)


def test_an_option_before_the_command_stays_an_option(sprat: Run, store: Store) -> None:
    """Also where `--` ends the options."""
    answer = sprat("--json", "push", "numbers", "--", "-5")
    assert answer.data["count"] == 1


# -- work ---------------------------------------------------------------------------------------


def test_work_does_the_jobs_and_says_so(process: Run, store: Store) -> None:
    (item,) = store.pool("numbers").push_many([{"n": 21}])
    answer = process("work", "numbers", "--idle", "0", "--worker-id", "w1", "--json")
    assert answer.code == 0
    assert answer.data == {
        "status": "idle",
        "worker_id": "w1",
        "jobs": 1,
        "failed": 0,
        "refused": 0,
        "left": "idle",
    }
    assert f"job {item} attempt 1/3 done" in answer.err
    assert store.get(item).result == 42


@pytest.mark.parametrize("isolation", ["none", "process"])
def test_one_job_workers_say_when_there_is_no_work(
    isolation: str, process: Run, store: Store
) -> None:
    answer = process("work", "numbers", "--max-jobs=1", "--isolation", isolation, "--json")
    assert (answer.code, answer.data) == (0, {"status": "no_work_available"})


def test_work_tells_of_failures(process: Run, store: Store) -> None:
    store.pool("numbers").configure(handler="jobs:fail", retry_base_seconds=0.0)
    (item,) = store.pool("numbers").push_many([1], max_retries=2)
    answer = process("work", "numbers", "--idle", "200ms")
    assert "attempt 1/2 failed: ValueError: no good" in answer.err
    assert "after 2 jobs, 2 of them failed" in answer.err
    assert store.get(item).status == "poisoned"


def test_plain_command_lines_of_work_need_no_argparse(store: Store) -> None:
    code = "import sys; from sprat.cli.main import main; main(sys.argv[1:]); print(*sys.modules)"
    store.pool("numbers").push({"n": 1})
    line = ["work", "numbers", "--max-jobs", "1", "--idle", "0.5", "--url", "sqlite:///sprat.db"]
    loaded = subprocess.run(
        [sys.executable, "-c", code, *line], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "sprat.worker.worker" in loaded
    assert not {"argparse", "subprocess", "difflib", "ruamel.yaml"} & set(loaded)


# -- check, reap, scale -------------------------------------------------------------------------


def test_a_dry_check_launches_nobody(sprat: Run, store: Store) -> None:
    store.pool("numbers").push_many([1, 2, 3])
    answer = sprat("check", "numbers", "--dry-run")
    assert "3 waiting" in answer.out
    assert "would launch 2 workers" in answer.out
    assert (
        sprat("check", "numbers", "--dry-run", "--max-workers", "1", "--json").data["spawned"] == 1
    )
    assert store.workers.list() == []


def test_the_environment_overrides_a_check(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.pool("numbers").push_many([1, 2, 3])
    monkeypatch.setenv("SPRAT_MAX_WORKERS", "1")
    assert sprat("check", "numbers", "--dry-run", "--json").data["spawned"] == 1
    assert (
        sprat("check", "numbers", "--dry-run", "--json", "--max-workers", "3").data["spawned"] == 3
    )
    monkeypatch.setenv("SPRAT_MAX_WORKERS", "9")
    monkeypatch.setenv("SPRAT_MIN_WORKERS", "5")
    assert sprat("check", "numbers", "--dry-run", "--json").data["spawned"] == 5


def test_reap_frees_the_jobs_of_the_dead(sprat: Run, store: Store) -> None:
    store.pool("numbers").push(1)
    me = enrol(store, "w1")
    assert store.pool("numbers").claim(me)
    assert sprat("reap", "numbers").out.startswith("0 workers lost, 0 jobs freed")
    reaped = sprat("reap", "--threshold", "0", "--json").data
    assert (reaped["workers"], reaped["released"]) == (["w1"], 1)


def test_scale_drains_the_surplus(sprat: Run, store: Store) -> None:
    for n in range(3):
        enrol(store, f"w{n}")
    dry = sprat("scale", "numbers", "--target-workers", "1", "--dry-run").out
    assert dry == "numbers: current 3, target 1: 0 would be launched, 2 would be terminating\n"
    done = sprat("scale", "numbers", "--target-workers", "1", "--json").data
    assert (done["current"], done["launched"], done["terminating"]) == (3, 0, 2)
    assert len(store.workers.list(status=model.TERMINATING)) == 2


# -- status, explain ----------------------------------------------------------------------------


def test_status_counts_jobs_and_workers(sprat: Run, store: Store) -> None:
    store.pool("numbers").push_many([1, 2])
    store.pool("numbers").push(3, delay=60)
    assert store.pool("numbers").claim(enrol(store, "w1"))
    (pool,) = sprat("status", "--json").data["pools"]
    assert (pool["ready"], pool["delayed"], pool["claimed"]) == (1, 1, 1)
    assert pool["workers"] == {"starting": 0, "active": 1, "terminating": 0, "idle": 0}
    heading, row = sprat("status").out.splitlines()
    assert heading.split()[:5] == ["POOL", "READY", "DELAYED", "RUNNING", "DONE"]
    assert row.split()[:7] == ["numbers", "1", "1", "1", "0", "0", "1"]
    shown = sprat("status", "numbers").out
    assert "the next is due in" in shown
    assert "1 active (0 idle)" in shown


def test_tables_fit_eighty_columns(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    store.pool("numbers").push({"text": "long " * 100 + "\x1b[31m\nred"})
    store.pool("a" * 30).push(1)
    enrol(store, "w-" + "0" * 28)
    for command in ("status", "jobs list numbers", "workers list", "explain"):
        out = sprat(*command.split()).out
        assert max(map(len, out.splitlines())) <= 80
        assert "\033" not in out


def test_wide_letters_take_two_columns(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    store.pool("numbers").push({"text": "\u6f22\u5b57" * 50})
    row = sprat("jobs", "list", "numbers").out.splitlines()[1]
    assert row.endswith("\u6f22...")
    assert 78 <= len(row) + row.count("\u6f22") + row.count("\u5b57") <= 80


@pytest.mark.parametrize("line", ["status", "jobs list numbers", "workers list", "watch numbers"])
def test_all_is_readable_on_forty_columns(line: str, store: Store, place: Path) -> None:
    store.pool("numbers").push(1)
    store.pool("numbers").pause()
    enrol(store, "w1")
    shown = on_a_terminal(place, 40, "watch numbers --timeout 0.1" if "watch" in line else line)
    lines = [part for part in shown.split("\r") if not part.startswith("sprat: ")]
    assert max(map(len, lines)) <= 40
    said = {"status": "pool     numbers", "jobs list numbers": "about   1", "workers list": "w1"}
    assert said.get(line, "0/1 done") in shown


def on_a_terminal(place: Path, columns: int, line: str) -> str:
    """What a command writes to a terminal of that width, without colours."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [sys.executable, "-m", "sprat", *line.split()]
    shown = b""
    with subprocess.Popen(command, cwd=place, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        while (part := _read(ours)) or process.poll() is None:
            shown += part
    os.close(ours)
    return re.sub(r"\033\[[0-9;]*[A-Za-z]", "", shown.decode()).replace("\n", "")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:  # the other side is closed
        return b""


def test_explain_tells_reasons_inputs_and_failed_launches(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    pool.push_many([1, 2])
    seen = pool.observe()
    recorded = pool.record(queue_depth.decide(seen, pool.state().settings), version=seen.version)
    assert recorded
    why = "the handler jobs:gone cannot be imported: no such thing"
    store.workers.update_status(recorded.launched[0], model.LOST, reason=why)
    out = " ".join(sprat("explain", "numbers").out.split())
    assert "up 0 -> 2 (queue-depth)" in out
    assert "seen: 2 ready, 0 claimed" in out
    assert "never came to work: the handler jobs:gone cannot be imported" in out
    (told,) = sprat("explain", "numbers", "-n", "1", "--json").data["pools"]
    assert told["lost"][0]["reason"] == why
    assert told["now"]["reason"]


# -- jobs, workers ------------------------------------------------------------------------------


def test_jobs_are_listed_a_page_at_a_time(sprat: Run, store: Store) -> None:
    ids = store.pool("numbers").push_many([1, 2, 3])
    page = sprat("jobs", "list", "numbers", "--limit", "2", "--json").data
    assert [item["id"] for item in page["items"]] == ids[:2]
    assert page["next"] == ids[1]
    assert "token" not in page["items"][0]
    assert f"--limit 2 --after {ids[1]}" in sprat("jobs", "list", "numbers", "--limit", "2").err
    whole = sprat("jobs", "list", "numbers", "--limit", "10000", "--json").data
    assert ([item["id"] for item in whole["items"]], whole["next"]) == (ids, None)
    rest = sprat("jobs", "list", "numbers", "--after", ids[1], "--json").data
    assert ([item["id"] for item in rest["items"]], rest["next"]) == (ids[2:], None)
    assert sprat("jobs", "list", "numbers", "--status", "done", "--json").data["items"] == []


def test_a_job_is_listed_as_delayed_until_it_is_due(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    pool.push("soon", delay=0.01)
    pool.push("later", delay=600)
    end = time.monotonic() + 30
    while pool.counts().delayed > 1:
        assert time.monotonic() < end
        time.sleep(0.01)
    soon, later = sprat("jobs", "list", "numbers").out.splitlines()[1:]
    assert soon.split()[1:2] + later.split()[1:2] == ["ready", "delayed"]


CALENDAR = r"\(20\d\d-\d\d-\d\d \d\d:\d\d:\d\d UTC\)"


def has_one_column(shown: str) -> bool:
    """Whether all values begin at the same place."""
    return len({re.search(r"  +", line).end() for line in shown.splitlines()}) == 1  # type: ignore[union-attr]


def test_a_job_is_shown_with_its_error(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    item_id = pool.push({"n": 1})
    item = pool.claim(enrol(store, "w1"))
    assert item
    pool.fail(item, "bad\n  \x1b[31mline two", poison=True)
    shown = sprat("jobs", "show", item_id)
    facts = shown.out.partition("error\n")[0]
    assert has_one_column(facts)
    assert re.search(rf"^created  .* ago {CALENDAR}$", facts, re.MULTILINE)
    assert re.search(r"^attempts +\d of 3$", facts, re.MULTILINE)
    assert "failed" in shown.out
    assert "line two" in shown.out
    assert "\033" not in shown.out
    assert sprat("jobs", "show", item_id, "--json").data["error"].startswith("bad")


def test_jobs_are_requeued_and_cancelled_by_id_or_all(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    ids = pool.push_many([1, 2, 3])
    me = enrol(store, "w1")
    for _ in range(2):
        item = pool.claim(me)
        assert item
        pool.fail(item, "bad", poison=True)
    assert sprat("jobs", "requeue", ids[0], "--json").data == {"requeued": 1}
    assert sprat("jobs", "requeue", "--all-poisoned", "numbers").out == "1 job requeued\n"
    assert sprat("jobs", "cancel", ids[0], ids[1]).out == "2 jobs cancelled\n"
    assert sprat("jobs", "cancel", "--all-pending", "numbers", "--json").data == {"cancelled": 1}
    assert pool.counts().cancelled == 3


def test_purge_deletes_what_was_kept_long_enough(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    pool.configure(keep_cancelled_seconds=0)
    pool.cancel(*pool.push_many([1, 2]))
    assert sprat("jobs", "purge", "numbers").out == "2 jobs purged\n"
    assert sprat("jobs", "purge", "--json").data == {"purged": 0}


def test_purge_with_compact_returns_the_space(sprat: Run, store: Store, place: Path) -> None:
    pool = store.pool("numbers")
    pool.configure(keep_cancelled_seconds=0)
    pool.cancel(*pool.push_many(["x" * 1000] * 2000))
    kept = pool.push("kept")
    data = sprat("jobs", "purge", "--compact", "--json").data
    assert data["purged"] == 2000
    before, after = data["compacted"]["before_bytes"], data["compacted"]["after_bytes"]
    assert before > 2_000_000 > 500_000 > after
    assert (place / "sprat.db").stat().st_size <= after
    assert store.get(kept).data == "kept"
    answer = sprat("jobs", "purge", "numbers", "--compact")
    assert re.fullmatch(r"0 jobs purged\n0\.\d MB on disk, 0\.\d MB before\n", answer.out)


def test_compact_says_what_a_server_does_instead(sprat: Run, shared: World) -> None:
    with shared.open() as store:
        store.pool("numbers").push(1)
        kind = store.describe()["kind"]
    answer = sprat("jobs", "purge", "--compact", "--url", shared.url)
    assert (answer.code, answer.out.splitlines()[0]) == (0, "0 jobs purged")
    words = {
        "sqlite": "MB on disk",
        "postgresql": "autovacuum",
        "redis": "returns the memory",
        "http": "on the server's machine",
    }
    assert words[kind] in answer.out + answer.err
    data = sprat("jobs", "purge", "--compact", "--json", "--url", shared.url).data
    assert (data["compacted"] is None) == (kind != "sqlite")


def test_workers_are_listed_shown_and_drained(sprat: Run, store: Store) -> None:
    enrol(store, "w1", pid=1234)
    enrol(store, "w2")
    assert sprat("workers", "list", "numbers").out.splitlines()[1].split()[:4] == [
        *("w1", "numbers", "active", "1234")
    ]
    assert sprat("workers", "show", "w1", "--json").data["pid"] == 1234
    shown = sprat("workers", "show", "w1").out
    assert re.search(rf"^seen  .* ago {CALENDAR}$", shown, re.MULTILINE)
    assert re.search(rf"^lease end +in .* {CALENDAR}$", shown, re.MULTILINE)
    assert has_one_column(shown)
    assert sprat("workers", "drain", "w1").out == "1 worker will leave after the job at hand\n"
    assert sprat("workers", "drain", "--pool", "numbers", "--json").data == {"drained": ["w2"]}
    statuses = [w["status"] for w in sprat("workers", "list", "--json").data["workers"]]
    assert statuses == ["terminating", "terminating"]
    store.workers.update_status("w1", model.TERMINATED)
    assert len(sprat("workers", "list", "--json").data["workers"]) == 1
    assert len(sprat("workers", "list", "--all", "--json").data["workers"]) == 2
    assert len(sprat("workers", "list", "--status", "terminated", "--json").data["workers"]) == 1


# -- pause, resume, watch -----------------------------------------------------------------------


def test_a_paused_pool_hands_out_nothing_until_resumed(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    pool.push(1)
    me = enrol(store, "w1")
    assert sprat("pause", "numbers", "--for", "1h", "--json").data["seconds"] == 3600
    assert pool.claim(me) is None
    assert sprat("status").out.splitlines()[1].endswith("  paused")
    assert sprat("resume", "numbers").out == "numbers goes on\n"
    assert pool.claim(me)
    assert "until `sprat resume`" in sprat("pause", "numbers").out
    assert sprat("resume", "numbers", "--json").data == {"pool": "numbers", "paused": False}


def test_watch_of_nothing_is_over_at_once(sprat: Run, store: Store) -> None:
    answer = sprat("watch", "numbers", "--json")
    assert (answer.code, answer.data["finished"], answer.data["done"]) == (0, True, 0)
    assert answer.err == "nothing to wait for: 0 jobs done before\n"


def test_where_nobody_works_watch_and_explain_say_so(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.cli.watch.STILL_SECONDS", 0.0)
    store.pool("nobody").push(1)
    assert "`sprat apply` gives it a handler" in sprat("watch", "nobody", "--timeout", "0.5").err
    assert "`sprat apply` gives it one" in sprat("explain", "nobody").out


def test_watch_of_a_paused_pool_says_how_to_go_on(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.cli.watch.STILL_SECONDS", 0.0)
    store.pool("numbers").push({"n": 1})
    store.pool("numbers").pause()
    assert "`sprat resume numbers`" in sprat("watch", "numbers", "--timeout", "0.5").err


def test_watch_does_not_fill_a_log_while_nothing_changes(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.cli.watch.LINE_SECONDS", 0.0)
    store.pool("numbers").push(1)
    answer = sprat("watch", "numbers", "--timeout", "0.7")
    assert answer.err.count("0/1 done") == 2, "the first, and when it gave up"


def test_watch_gives_up_in_time(sprat: Run, store: Store) -> None:
    store.pool("numbers").push(1)
    answer = sprat("watch", "numbers", "--timeout", "0.3")
    assert (answer.code, answer.out) == (1, "")
    assert "not finished after 0.3 s; the work goes on" in answer.err


# -- doctor -------------------------------------------------------------------------------------


def test_doctor_finds_nothing_wrong(sprat: Run, store: Store) -> None:
    answer = sprat("doctor")
    assert (answer.code, answer.err) == (0, "")
    assert {line.split()[0] for line in answer.out.splitlines()} == {"ok"}
    checks = {finding["check"] for finding in sprat("doctor", "--json").data["checks"]}
    assert {"store", "sqlite", "disk", "durability", "clock", "workers", "numbers"} <= checks


@pytest.mark.parametrize(
    ("handler", "says"),
    [
        ("gone:f", "cannot be imported: ModuleNotFoundError"),
        ("jobs:gone", "jobs has no gone"),
        ("jobs:not_a_function", "is not a function"),
    ],
)
def test_doctor_fails_on_a_handler_that_is_not_there(
    handler: str, says: str, sprat: Run, store: Store
) -> None:
    store.pool("numbers").configure(handler=handler)
    answer = sprat("doctor")
    assert answer.code == 1
    assert re.search(rf"^FAIL  numbers .*{says}", answer.out, re.MULTILINE)


def test_doctor_warns_of_what_a_person_should_look_at(
    sprat: Run, store: Store, place: Path
) -> None:
    pool = store.pool("numbers")
    pool.push_many([1, 2])
    item = pool.claim(enrol(store, "w1", lease_seconds=0.001))
    assert item
    pool.fail(item, "bad", poison=True)
    pool.pause()
    os.chmod(place / "sprat.db", 0o644)
    answer = sprat("doctor")
    assert answer.code == 0
    warnings = " ".join(line for line in answer.out.splitlines() if line.startswith("warn"))
    for part in ("others than its owner", "without a heartbeat", "paused", "1 failed"):
        assert part in warnings
    assert stat.S_IMODE((place / "sprat.db").stat().st_mode) == 0o644


def test_doctor_fails_on_a_missing_store_and_makes_none(sprat: Run, place: Path) -> None:
    answer = sprat("doctor", "--json")
    assert (answer.code, answer.data["ok"]) == (1, False)
    assert not (place / "sprat.db").exists()


def test_doctor_fails_on_a_broken_file(sprat: Run, store: Store, place: Path) -> None:
    (place / "sprat.yml").write_text("pools: {a: {max_worker: 1}}")
    answer = sprat("doctor")
    assert answer.code == 1
    assert "did you mean max_workers?" in answer.out


# -- everywhere ---------------------------------------------------------------------------------


def test_json_is_one_document_on_one_line_and_data_only(process: Run, store: Store) -> None:
    store.pool("numbers").push({"text": "grün"})
    for command in ("status", "jobs list numbers", "workers list", "explain", "doctor", "reap"):
        answer = process(*command.split(), "--json", env={**os.environ, "PYTHONUTF8": "1"})
        assert (answer.code, answer.err) == (0, "")
        assert answer.out.count("\n") == 1
        json.loads(answer.out)


@pytest.mark.parametrize(
    "plain", [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0"}], ids=str
)
def test_letters_that_a_terminal_cannot_show_are_no_error(
    process: Run, store: Store, plain: dict[str, str]
) -> None:
    store.pool("numbers").push("grün \N{PARTY POPPER}")
    answer = process("jobs", "list", "numbers", env={**os.environ, **plain})
    assert (answer.code, answer.err) == (0, "")
    assert "gr\\xfcn" in answer.out
