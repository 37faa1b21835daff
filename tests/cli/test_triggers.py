"""`sprat triggers` and `triggers:` in files: what they do, and the sentence when they cannot."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sprat.config.trigger import checked
from sprat.store.store import Store
from sprat.triggers import registry

Command = Callable[..., Any]

REGISTRY = """\
triggers:
  - name: cron_5min
    type: cron
    schedule: "*/5 * * * *"
    machine: parallelization_checker
    input:
      pool_id: numbers

  - name: local_subprocess
    type: subprocess
    on: work_added  # an event
    machine: parallelization_checker
"""


@pytest.fixture
def registered(place: Path, sprat: Command, store: Store) -> Store:
    (place / "trigger_registry.yml").write_text(REGISTRY)
    assert sprat("apply", "trigger_registry.yml").code == 0
    return store


def test_a_registry_file_is_applied_to_the_store_of_sprat_yml(
    registered: Store, sprat: Command
) -> None:
    listed = sprat("triggers", "list", "--json").data["triggers"]
    assert [(one["name"], one["pool"], one["on"]) for one in listed] == [
        ("cron_5min", "numbers", []),
        ("local_subprocess", None, ["work_added"]),
    ]
    assert listed[0]["next_due"] % 300 == 0
    events = registered.pool("numbers").state().settings.events
    assert dict(events) == {"work_added": ["local_subprocess"]}
    again = sprat("apply", "trigger_registry.yml")
    assert again.out == (
        "trigger cron_5min: unchanged; machine parallelization_checker (built-in)\n"
        "trigger local_subprocess: unchanged; machine parallelization_checker (built-in)\n"
    )


OWN = "data: {states: {start: {type: initial, transitions: [{to: end}]}, end: {type: final}}}\n"


@pytest.mark.parametrize("ending", ["yml", "yaml"])
@pytest.mark.parametrize("name", ["parallelization_checker", "stale_worker_reaper", "job_worker"])
def test_a_file_beside_the_triggers_is_used_instead_of_the_built_in_machine(
    place: Path, sprat: Command, store: Store, name: str, ending: str
) -> None:
    (place / "t.yml").write_text(f"triggers: [{{name: own, type: lambda, machine: {name}}}]")
    said = sprat("apply", "t.yml", "--dry-run").out
    assert said == f"trigger own: would be changed: new; machine {name} (built-in)\n"
    (place / f"{name}.{ending}").write_text(OWN)
    assert sprat("apply", "t.yml").out == (f"trigger own: changed: new; machine {name}.{ending}\n")
    assert sprat("apply", "t.yml", "--json").data["machines"] == {"own": f"{name}.{ending}"}
    assert sprat("triggers", "fire", "own").out == "own: done\n"


def test_the_pools_machines_name_the_machine_of_a_trigger(
    place: Path, sprat: Command, store: Store
) -> None:
    (place / "config").mkdir()
    (place / "config" / "mine.yml").write_text(OWN)
    machines = "{numbers: {machines: {parallelization_checker: config/mine.yml}}}"
    trigger = "{name: own, type: lambda, machine: parallelization_checker, pool: numbers}"
    (place / "t.yml").write_text(f"pools: {machines}\ntriggers: [{trigger}]\n")
    assert "trigger own: changed: new; machine config/mine.yml\n" in sprat("apply", "t.yml").out
    (place / "other.yml").write_text(f"triggers: [{trigger.replace('own', 'other')}]\n")
    assert sprat("apply", "other.yml").out.endswith("; machine config/mine.yml\n")
    assert sprat("triggers", "fire", "other").out == "other: done\n"


def test_a_machine_that_is_wrong_is_told_before_anything_is_written(
    place: Path, sprat: Command, store: Store
) -> None:
    (place / "t.yml").write_text("triggers: [{name: own, type: lambda, machine: job_worker}]")
    (place / "job_worker.yml").write_text("data: {states: 3}\n")
    answer = sprat("apply", "t.yml")
    assert (answer.code, answer.err.count("\n")) == (2, 1)
    assert "job_worker.yml" in answer.err
    assert sprat("triggers", "list").out == "no triggers\n"
    (place / "job_worker.yml").unlink()
    (place / "t.yml").write_text("triggers: [{name: own, type: lambda, machine: absent}]")
    assert f"; machine absent (not found in {place})\n" in sprat("apply", "t.yml").out


def test_applying_pools_again_keeps_their_triggers(registered: Store, sprat: Command) -> None:
    assert sprat("apply", "--no-import").out == "numbers: unchanged\n"
    events = registered.pool("numbers").state().settings.events
    assert dict(events) == {"work_added": ["local_subprocess"]}


def test_a_dry_run_writes_no_trigger(place: Path, sprat: Command, store: Store) -> None:
    (place / "trigger_registry.yml").write_text(REGISTRY)
    said = sprat("apply", "trigger_registry.yml", "--dry-run")
    assert "trigger cron_5min: would be changed: new" in said.out
    assert sprat("triggers", "list").out == "no triggers\n"


def test_triggers_are_listed_for_people(registered: Store, sprat: Command) -> None:
    lines = sprat("triggers", "list").out.splitlines()
    assert lines[0].split() == ["NAME", "TYPE", "POOL", "WHEN", "NEXT", "WHAT"]
    assert re.match(r"cron_5min +cron +numbers +\*/5 \* \* \* \* +in .*", lines[1])
    assert re.match(r"local_subprocess +subprocess +- +work_added +-", lines[2])


def test_a_trigger_is_fired_by_hand(registered: Store, sprat: Command) -> None:
    fired = sprat("triggers", "fire", "cron_5min", "--json")
    assert fired.code == 0
    assert fired.data["ok"] is True
    assert fired.data["said"].startswith("numbers: ")


def test_nothing_is_due_right_after_apply(registered: Store, sprat: Command) -> None:
    assert sprat("triggers", "tick", "cron_5min").out in (
        "nothing is due\n",
        "cron_5min: numbers: no work waits\n",  # the minute may just have passed
    )


def test_a_failed_command_is_exit_code_1(place: Path, sprat: Command, store: Store) -> None:
    (place / "t.yml").write_text("triggers: [{name: no, type: lambda, command: ['false']}]")
    sprat("apply", "t.yml")
    fired = sprat("triggers", "fire", "no")
    assert (fired.code, fired.out) == (1, "no: failed: false exited with code 1\n")


def test_the_doctor_tells_when_nobody_ticks(registered: Store, sprat: Command) -> None:
    said = {one["check"]: one for one in sprat("doctor", "--json").data["checks"]}
    assert said["triggers"]["state"] == "ok"
    registry.mark(registered, "cron_5min", registry.now(registered) - 3600)
    said = {one["check"]: one for one in sprat("doctor", "--json").data["checks"]}
    assert said["triggers"]["state"] == "warn"
    assert said["triggers"]["detail"].startswith("cron_5min was due ")


def test_triggers_are_removed(registered: Store, sprat: Command) -> None:
    wrong = sprat("triggers", "remove", "cron_5min", "nobody")
    assert wrong.code == 2
    assert (
        sprat("triggers", "remove", "cron_5min", "local_subprocess").out == "2 triggers removed\n"
    )
    assert sprat("triggers", "list").out == "no triggers\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("fire", "cron_5mni"), "did you mean cron_5min?"),
        (("fire", "cron_5min", "--pool", "nobody"), "there is no pool 'nobody'"),
        (("tick", "x"), "there is no trigger 'x'"),
        (("tick", "--wiat", "5"), "unknown option --wiat: did you mean --wait?"),
        (("tick", "--wait", "soon"), "it must be a time"),
        (("explode",), "explode"),
        ((), "ACTION"),
    ],
)
def test_a_wrong_word_is_told(
    registered: Store, sprat: Command, arguments: tuple[str, ...], said: str
) -> None:
    answer = sprat("triggers", *arguments)
    assert answer.code == 2
    assert said in answer.err
    assert answer.err.count("\n") == 1


BROKEN = [
    ("{a: 1}", 1, 11, "triggers must be a list"),
    ("[3]", 1, 12, "a trigger must be a mapping"),
    ("[{type: cron}]", 1, 12, "needs a name"),
    ("[{name: a}]", 1, 12, "needs a type"),
    ("[{name: 'a b', type: cron}]", 1, 19, "the trigger's name 'a b' must be"),
    ("[{name: a, type: crno}]", 1, 28, "type must be cron or"),
    ("[{name: a, type: cron}]", 1, 12, "needs a schedule"),
    ("[{name: a, type: cron, schedule: '61 * * * *'}]", 1, 44, "'61' is no minute"),
    ("\n  - name: a\n    type: cron\n    schedule: '* *'", 4, 15, "has 2 fields"),
    ("[{name: a, type: cron, schedule: '@hourly', timezone: Mars}]", 1, 65, "no time zone 'Mars'"),
    ("[{name: a, type: cron, schedule: '@hourly', on: work_added}]", 1, 12, "events are for"),
    ("[{name: a, type: subprocess}]", 1, 12, "needs an event"),
    ("[{name: a, type: subprocess, on: work_aded}]", 1, 44, "on must be work_added or"),
    ("[{name: a, type: in_loop, on: []}]", 1, 41, "names no event"),
    ("[{name: a, type: webhook}]", 1, 12, "secret_env"),
    ("[{name: a, type: webhook, secret_env: 's3cr3t-!'}]", 1, 49, "not a secret itself"),
    ("[{name: a, type: lambda, secret_env: S}]", 1, 12, "for webhook triggers"),
    ("[{name: a, type: lambda, schedule: '@daily'}]", 1, 12, "for cron triggers"),
    ("[{name: a, type: lambda, comand: [x]}]", 1, 36, "did you mean command?"),
    ("[{name: a, type: lambda, command: x}]", 1, 45, "must be a list"),
    ("[{name: a, type: lambda, command: [x], machine: m}]", 1, 12, "not both"),
    ("[{name: a, type: lambda, input: 3}]", 1, 43, "must be a mapping"),
    ("[{name: a, type: lambda, pool: b, input: {pool_id: c}}]", 1, 12, "leave one of them out"),
    ("[{name: a, type: lambda, timeout_seconds: 0}]", 1, 53, "timeout_seconds must be"),
    ("[{name: a, type: lambda, timeout_seconds: 5 minutes}]", 1, 53, "a time such as 500ms"),
    ("[{name: a, type: lambda}, {name: a, type: lambda}]", 1, 37, "two triggers"),
]


@pytest.mark.parametrize(("text", "line", "column", "said"), BROKEN)
def test_what_is_wrong_in_a_file_is_told_with_its_place(
    place: Path, sprat: Command, text: str, line: int, column: int, said: str
) -> None:
    (place / "t.yml").write_text(f"triggers: {text}\n")
    answer = sprat("apply", "t.yml")
    assert answer.code == 2
    assert answer.err.startswith(f"sprat: t.yml, line {line}, column {column}: ")
    assert said in answer.err
    assert answer.err.count("\n") == 1


def test_events_of_a_pool_are_not_written_by_hand(place: Path, sprat: Command) -> None:
    (place / "t.yml").write_text("pools: {a: {events: {work_added: [x]}}}\n")
    assert "made from triggers" in sprat("apply", "t.yml").err


def test_a_trigger_for_a_pool_that_is_nowhere_is_refused(
    place: Path, sprat: Command, store: Store
) -> None:
    trigger = "triggers: [{name: a, type: cron, schedule: '@hourly', pool: POOL}]\n"
    (place / "t.yml").write_text("pools: {new: {}}\n" + trigger.replace("POOL", "nubmers"))
    answer = sprat("apply", "t.yml")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "sprat: t.yml: trigger a is for a pool that does not exist: nubmers: "
        "did you mean numbers?\n"
    )
    assert store.pools() == ["numbers"]  # nothing was written
    for pool in ("numbers", "new"):  # one of the store, one of the file
        (place / "t.yml").write_text("pools: {new: {}}\n" + trigger.replace("POOL", pool))
        assert sprat("apply", "t.yml").code == 0


def test_a_trigger_that_comes_before_its_pool_is_refused_with_advice(
    place: Path, sprat: Command
) -> None:
    (place / "t.yml").write_text("triggers: [{name: a, type: cron, schedule: '@daily', pool: p}]\n")
    answer = sprat("apply", "t.yml", "--url", "sqlite:///fresh.db")
    assert (answer.code, answer.err) == (
        2,
        "sprat: t.yml: trigger a is for a pool that does not exist: p: push to it, or apply its "
        "settings, first\n",
    )


def test_ctrl_c_stops_what_a_trigger_runs(place: Path, store: Store) -> None:
    """It is in a session of its own: the terminal's signal does not reach it."""
    os.mkfifo(place / "pids")
    command = ["/bin/sh", "-c", "sleep 600 & echo $! $$ > pids; wait"]
    made = {"name": "long", "type": "lambda", "command": command, "directory": str(place)}
    registry.save(store, checked(made))
    fire = [sys.executable, "-m", "sprat", "triggers", "fire", "long"]
    with subprocess.Popen(fire, stderr=subprocess.PIPE, text=True) as process:
        pids = (place / "pids").read_text().split()
        process.send_signal(signal.SIGINT)
        assert process.communicate(timeout=60)[1] == ""  # its end comes when all have left
    assert process.returncode == 130
    assert len(pids) == 2
