"""Cron triggers: each due time fires once, whoever ticks; and a tick wakes pools that sleep."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from datetime import date
from pathlib import Path

import pytest
from patience import eventually
from processes import Together, at_once
from worlds import World

from sprat.config.trigger import Trigger, checked
from sprat.fleet import checker
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.triggers import events, firing, registry
from sprat.triggers.tick import tick


def noting(place: Path, **about: object) -> Trigger:
    """A cron trigger that adds a line to a file whenever it fires."""
    values = {"name": "note", "type": "cron", "schedule": "*/5 * * * *", **about}
    return Trigger(command=["/bin/sh", "-c", f"echo x >> {place}/fired"], **values)  # type: ignore[arg-type]


def fired(place: Path) -> int:
    file = place / "fired"
    return len(file.read_text().splitlines()) if file.exists() else 0


def test_a_new_trigger_counts_from_now(store: Store, tmp_path: Path) -> None:
    registry.save(store, noting(tmp_path))
    assert tick(store).fired == ()


def test_date_in_the_input_is_stored_as_text_and_is_no_difference(store: Store) -> None:
    about = {"name": "a", "type": "cron", "schedule": "@daily", "input": {"day": date(2026, 7, 1)}}
    assert registry.save(store, checked(about)) == ["new"]
    assert registry.save(store, checked(about)) == []
    assert registry.find(store, "a").input == {"day": "2026-07-01"}


def test_a_due_time_fires_once(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    registry.save(store, noting(tmp_path))
    advance(300)
    [done] = tick(store).fired
    assert (done.trigger, done.event, done.ok) == ("note", "due", True)
    assert tick(store).fired == ()
    assert fired(tmp_path) == 1


def test_missed_times_are_made_up_for_once(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    registry.save(store, noting(tmp_path))
    advance(86400 * 3)
    assert len(tick(store).fired) == 1
    assert tick(store).fired == ()
    advance(300)
    assert len(tick(store).fired) == 1
    assert fired(tmp_path) == 2


def test_a_new_schedule_counts_from_when_it_was_given(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    registry.save(store, noting(tmp_path, schedule="0 0 1 1 *"))
    advance(4000)
    registry.save(store, noting(tmp_path, schedule="@hourly"))
    assert tick(store).fired == ()
    registry.save(store, noting(tmp_path, schedule="@hourly", timeout_seconds=9.0))
    advance(3600)
    assert len(tick(store).fired) == 1


def test_only_the_named_trigger_is_looked_at(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    registry.save(store, noting(tmp_path))
    registry.save(store, noting(tmp_path, name="other"))
    advance(300)
    assert [done.trigger for done in tick(store, ["other"]).fired] == ["other"]
    assert [done.trigger for done in tick(store).fired] == ["note"]


def test_what_fails_is_told_and_does_not_hold_up_the_others(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    registry.save(store, noting(tmp_path))
    broken = noting(tmp_path, name="broken").replace(command=["/bin/sh", "-c", "exit 3"])
    absent = noting(tmp_path, name="absent").replace(command=["/nowhere/program"])
    registry.save(store, broken)
    registry.save(store, absent)
    advance(300)
    said = {done.trigger: (done.ok, done.said) for done in tick(store).fired}
    assert said["note"] == (True, "done")
    assert said["broken"] == (False, "/bin/sh exited with code 3")
    assert said["absent"][0] is False
    assert "cannot be started" in said["absent"][1]


def test_a_command_is_stopped_with_all_it_started_when_its_time_is_over(
    store: Store, advance: Callable[[float], None], tmp_path: Path
) -> None:
    pid = tmp_path / "pid"
    script = f"sleep 60 & echo $! > {pid}; wait"
    slow = noting(tmp_path, timeout_seconds=3).replace(command=["/bin/sh", "-c", script])
    registry.save(store, slow)
    advance(300)
    began = time.monotonic()
    [done] = tick(store).fired
    assert (done.ok, done.said) == (False, "stopped after 3 seconds")
    assert time.monotonic() - began < 40
    eventually(lambda: not _runs(pid.read_text().strip()), "sleep 60 still runs", within=30)


def _runs(pid: str) -> bool:
    """A process that was killed is gone, or waits for its parent to notice."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_pass_runs_where_the_tick_does(shared: World, monkeypatch: pytest.MonkeyPatch) -> None:
    store = shared.open()
    store.pool("papers").configure(command=["cat"], max_workers=2, start_on_push=False)
    registry.save(store, Trigger(name="check", type="cron", schedule="* * * * *", pool="papers"))
    launched: list[tuple[str, ...]] = []
    monkeypatch.setattr(checker, "launch", lambda s, p, c, ids, *_: launched.append(ids))
    store.pool("papers").push_many([{}] * 5)
    shared.advance(60)
    [done] = tick(store).fired
    assert done.ok
    assert [len(ids) for ids in launched] == [2]


MACHINE = """\
spec: flatmachine
spec_version: "0.8.3"
data:
  name: note
  context: {pool: "{{ input.pool_id }}", depth: "{{ input.depth }}", event: "{{ input.event }}"}
  states:
    start: {type: initial, transitions: [{to: done}]}
    done: {type: final, output: {said: "{{ context.event }} in {{ context.pool }}"}}
"""


def test_a_machine_of_a_file_is_run_with_the_triggers_input(
    shared: World, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "note.yml").write_text(MACHINE)
    store = shared.open()
    trigger = Trigger(
        name="machine",
        type="lambda",
        pool="papers",
        machine="note.yml",
        input={"depth": 3},
        directory=str(tmp_path),
    )
    assert firing.fire(store, trigger).said == "done"
    assert json.loads(capfd.readouterr().err.strip())["said"] == "fired in papers"
    missing = firing.fire(store, trigger.replace(machine="nobody.yml"))
    assert (missing.ok, missing.said) == (False, "the machine nobody.yml exited with code 2")


def test_of_eight_ticks_at_once_one_fires_each_time(shared: World, tmp_path: Path) -> None:
    store = shared.open()
    for number in range(5):
        registry.save(store, noting(tmp_path, name=f"note{number}"))
    shared.advance(300)
    answers = at_once(8, _tick_together, shared.url)
    assert sorted(name for names in answers for name in names) == [f"note{n}" for n in range(5)]
    assert fired(tmp_path) == 5


def _tick_together(place: int, together: Together, url: str) -> list[str]:
    with open_store(url) as store:
        together()
        return [done.trigger for done in tick(store).fired]


def test_a_tick_links_pools_that_came_after_their_triggers(store: Store) -> None:
    registry.save(store, Trigger(name="any", type="subprocess", on=("worker_lost",)))
    store.pool("late").configure(max_workers=1)
    tick(store)
    assert dict(store.pool("late").state().settings.events) == {"worker_lost": ["any"]}


def test_a_trigger_in_the_loop_runs_beside_a_push_into_any_store(
    store: Store, tmp_path: Path
) -> None:
    if store.url.startswith("http"):
        pytest.skip("who pushes to an orchestrator leaves events to it")
    go, done = tmp_path / "go", tmp_path / "done"
    script = f"while [ ! -e {go} ]; do sleep 0.02; done; cat > {done}"
    trigger = Trigger(
        name="beside", type="in_loop", on=("work_added",), command=["/bin/sh", "-c", script]
    )
    store.pool("papers").configure(max_workers=1)
    registry.save(store, trigger)
    registry.link(store)
    store.pool("papers").push({"n": 1})
    assert not done.exists()  # the push is back, and its trigger still waits
    go.touch()
    events.finish(store)
    assert json.loads(done.read_text()) == {"event": "work_added", "pool_id": "papers"}


def test_removing_a_trigger_unlinks_it(store: Store) -> None:
    store.pool("papers").configure(max_workers=1)
    registry.save(store, Trigger(name="one", type="in_loop", on=("pool_empty",), pool="papers"))
    registry.save(store, Trigger(name="two", type="in_loop", on=("pool_empty",), pool="others"))
    registry.link(store)
    assert dict(store.pool("papers").state().settings.events) == {"pool_empty": ["one"]}
    registry.remove(store, "one")
    assert dict(store.pool("papers").state().settings.events) == {}
    assert [trigger.name for trigger in registry.every(store)] == ["two"]


def test_a_stored_trigger_is_read_as_it_was_written(store: Store) -> None:
    trigger = Trigger(
        name="all",
        type="webhook",
        pool="papers",
        command=("echo", "hi"),
        input={"a": [1, None]},
        secret_env="HOOK",
        timeout_seconds=5.0,
        directory="/",
    )
    assert registry.save(store, trigger) == ["new"]
    assert registry.save(store, trigger) == []
    found = registry.find(store, "all")
    assert found.replace(command=tuple(found.command or ())) == trigger
    assert registry.save(store, trigger.replace(directory="/tmp")) == ["directory"]
