"""An interrupted machine goes on where it was: after kill -9, in a nested machine, on an item."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rooms import machine, run, write
from worlds import World

from sprat import open_store
from sprat.core.errors import InvalidInput
from sprat.core.model import WorkerRegistration
from sprat.machines.runtime.checkpoints import TakenOver
from sprat.machines.stepping import Position
from sprat.worker.job import Job
from sprat.worker.processor import load as load_processor

NOTES = """\
import os, signal

def note(given):
    with open(given["log"], "a") as log:
        log.write(given["word"] + "\\n")
    if given["word"] == os.environ.get("DIE_AT"):
        os.kill(os.getpid(), signal.SIGKILL)
    return given["word"]
"""
STEPS = """\
data:
  name: steps
  states:
    start: {type: initial, transitions: [{to: one}]}
    one: {action: "noting:note", input: {log: "{{ input.log }}", word: one},
      output_to_context: {one: "{{ output }}"},
      transitions: [{to: inside}]}
    inside: {machine: inner, input: {log: "{{ input.log }}"},
      output_to_context: {inner: "{{ output }}"},
      transitions: [{to: each}]}
    each: {foreach: [x, y, z], as: w, action: "noting:note",
      input: {log: "{{ input.log }}", word: "{{ w }}"},
      output_to_context: {each: "{{ output }}"},
      transitions: [{to: end}]}
    end: {type: final, output: {one: "{{ context.one }}", inner: "{{ context.inner }}",
      each: "{{ context.each }}"}}
"""
INNER = """\
data:
  name: inner
  states:
    start: {type: initial, transitions: [{to: a}]}
    a: {action: "noting:note", input: {log: "{{ input.log }}", word: a},
      output_to_context: {a: "{{ output }}"},
      transitions: [{to: b}]}
    b: {action: "noting:note", input: {log: "{{ input.log }}", word: b}, transitions: [{to: end}]}
    end: {type: final, output: "{{ context.a }}"}
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "noting.py").write_text(NOTES)
    (tmp_path / "steps.yml").write_text(STEPS)
    (tmp_path / "inner.yml").write_text(INNER)
    return tmp_path


def sprat_run(
    place: Path, *arguments: str, machine: str = "steps.yml", die_at: str = ""
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "SPRAT_URL": f"sqlite:///{place}/s.db", "DIE_AT": die_at}
    command = [sys.executable, "-m", "sprat.run", "--machine", machine, "--execution-id", "x1"]
    return subprocess.run(
        [*command, *arguments],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("word", ["one", "a", "b", "x", "z"])
def test_after_kill_minus_9_it_goes_on_at_the_state_that_was_interrupted(
    place: Path, word: str
) -> None:
    given = json.dumps({"log": str(place / "log")})
    killed = sprat_run(place, "--input", given, die_at=word)
    assert killed.returncode == -signal.SIGKILL
    resumed = sprat_run(place, "--resume")
    assert json.loads(resumed.stdout) == {"one": "one", "inner": "a", "each": ["x", "y", "z"]}
    all_words = ["one", "a", "b", "x", "y", "z"]
    at = all_words.index(word)
    # Everything once, and what was interrupted once more.
    assert (place / "log").read_text().split() == [*all_words[: at + 1], *all_words[at:]]
    again = sprat_run(place, "--resume")
    assert json.loads(again.stdout) == json.loads(resumed.stdout)
    assert len((place / "log").read_text().split()) == len(all_words) + 1


def test_an_id_that_was_used_is_not_begun_anew_by_accident(place: Path) -> None:
    given = json.dumps({"log": str(place / "log")})
    assert sprat_run(place, "--input", given).returncode == 0
    twice = sprat_run(place, "--input", given)
    assert twice.returncode == 2
    assert "execution x1 of steps is known already: --resume goes on with it" in twice.stderr


def test_what_is_not_known_is_not_resumed(place: Path) -> None:
    """Somebody who mistypes an id, or a file, must not begin the whole work again."""
    unknown = sprat_run(place, "--resume")
    assert (unknown.returncode, unknown.stdout) == (2, "")
    assert unknown.stderr == (
        "sprat: there is no execution x1 to resume: without --resume it begins\n"
    )
    assert not (place / "log").exists()
    assert sprat_run(place, "--input", json.dumps({"log": str(place / "log")})).returncode == 0
    other = sprat_run(place, "--resume", machine="inner.yml")
    assert (other.returncode, other.stdout) == (2, "")
    assert other.stderr == "sprat: execution x1 is one of steps, not of inner\n"


def test_a_worker_has_nothing_to_resume() -> None:
    text = """
    settings: {heartbeat_interval: 1}
    states: {a: {type: initial, transitions: [{to: b}]}, b: {type: final}}
    """
    with pytest.raises(InvalidInput, match="is a worker: it has nothing to resume"):
        run(open_store("memory://"), text, execution_id="x", resume=True)


def test_of_two_that_run_the_same_execution_the_last_one_goes_on() -> None:
    store = open_store("memory://")
    text = """
    states:
      start: {type: initial, action: first, transitions: [{to: end}]}
      end: {type: final, output: done}
    """
    outputs = []

    def take_over(_: Any) -> Any:
        if not outputs:
            outputs.append(None)
            actions = {"first": lambda _: None}
            outputs[0] = run(store, text, execution_id="x", resume=True, actions=actions)

    with pytest.raises(TakenOver, match="execution x is run by another process now"):
        run(store, text, execution_id="x", actions={"first": take_over})
    assert outputs == ["done"]


def test_a_changed_machine_begins_anew_where_its_state_is_gone() -> None:
    store = open_store("memory://")
    text = """
    states:
      start: {type: initial, action: ready, transitions: [{to: old}]}
      old: {action: work, transitions: [{to: end}]}
      end: {type: final, output: "{{ input.n }}"}
    """
    ready = {"ready": lambda _: None}
    with pytest.raises(InvalidInput, match="no action 'work'"):
        run(store, text, {"n": 1}, execution_id="x", actions=ready)
    found = run(
        store, text.replace("old", "new"), {"n": 2}, execution_id="x", resume=True,
        actions={**ready, "work": lambda _: None},
    )  # fmt: skip
    assert found == 2


def test_a_machine_that_processes_items_keeps_its_position_with_the_item(
    shared: World, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next attempt of the item goes on where the last one was interrupted."""
    monkeypatch.syspath_prepend(str(place))
    store = shared.open()
    pool = store.pool("p")
    pool.configure(machine="steps.yml", directory=str(place), isolation="none")
    log = place / "log"
    pool.push({"log": str(log)})
    store.workers.register(WorkerRegistration(worker_id="w", pool_id="p"))
    processor = load_processor(pool.state().settings)
    item = pool.claim("w")
    assert item is not None
    pid = os.fork()
    if pid == 0:
        os.environ["DIE_AT"] = "b"
        processor(Job(pool, item))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    again = pool.get(item)
    assert again.checkpoint["state"] == "inside"
    assert again.checkpoint["inner"]["state"] == "b"
    output = processor(Job(pool, item.replace(checkpoint=again.checkpoint)))
    assert output["each"] == ["x", "y", "z"]
    assert log.read_text().split() == ["one", "a", "b", "b", "x", "y", "z"]


def test_a_position_of_another_machine_is_not_resumed(tmp_path: Path) -> None:
    write(tmp_path, "m", "states: {a: {type: initial, transitions: [{to: a}]}}")
    made = machine("name: m\nstates: {a: {type: initial, transitions: [{to: a}]}}")
    good = {"machine": "m", "state": "a", "input": {}, "context": {}}
    assert Position.read(good, made) is not None
    for bad in (
        {**good, "machine": "n"},
        {**good, "state": "b"},
        {"step": 3},
        None,
        {**good, "x": 1},
    ):
        assert Position.read(bad, made) is None
