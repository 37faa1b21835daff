"""Processors: functions and commands, what a job can reach, and how it says that it failed."""

from __future__ import annotations

import datetime
import json
import os
import sys
from pathlib import Path

import pytest
from fleets import Fleet, eventually

each_isolation = pytest.mark.parametrize("isolation", ["process", "none"])


def run_one(fleet: Fleet, status: str = "done", *, max_retries: int = 3, **data: object):
    item = fleet.push(max_retries=max_retries, **data)
    fleet.check()
    return fleet.until_status(item, status)


def command(fleet: Fleet, *argv: str) -> None:
    fleet.set(handler=None, command=list(argv))


def python(fleet: Fleet, script: str) -> None:
    command(fleet, sys.executable, "-c", script)


# -- functions ------------------------------------------------------------------------------


@each_isolation
@pytest.mark.parametrize("handler", ["echo", "echo_async"])
def test_functions_sync_and_async(fleet: Fleet, handler: str, isolation: str) -> None:
    fleet.set(handler=f"jobs:{handler}", isolation=isolation)
    assert run_one(fleet, say={"ü": [1, None]}).result == {"ü": [1, None]}


@each_isolation
def test_a_large_result_arrives_whole(fleet: Fleet, isolation: str) -> None:
    fleet.set(isolation=isolation)
    say = "x" * 700_000
    assert run_one(fleet, say=say).result == say


@each_isolation
def test_checkpoint_of_the_attempt_before(fleet: Fleet, isolation: str) -> None:
    fleet.set(handler="jobs:checkpoints", isolation=isolation)
    item = run_one(fleet)
    assert item.result == {
        "attempt": 2,
        "fence": 2,
        "checkpoint": {"page": 7},
        "cancelled": False,
        "id": item.id,
    }


def test_progress_is_seen_while_the_job_runs(fleet: Fleet, tmp_path: Path) -> None:
    fleet.set(handler="jobs:show_progress")
    item = fleet.push(file=str(tmp_path / "go"))
    fleet.check()
    seen = eventually(lambda: (i := fleet.item(item)).progress and i)
    assert (seen.status, seen.progress, seen.progress_note) == ("claimed", 0.25, "a quarter")
    (tmp_path / "go").touch()
    fleet.until_done(1)


@each_isolation
def test_poison_ends_at_the_first_attempt(fleet: Fleet, isolation: str) -> None:
    fleet.set(handler="jobs:hopeless", isolation=isolation)
    item = run_one(fleet, "poisoned")
    assert (item.attempts, item.error) == (1, "no such paper")


def test_a_transient_failure_is_not_charged_and_waits_as_told(fleet: Fleet) -> None:
    fleet.set(handler="jobs:throttled")
    item = fleet.push(delay=600)
    fleet.check()
    back = eventually(lambda: (i := fleet.item(item)).error and i)
    assert (back.status, back.attempts, back.given_back) == ("pending", 0, 1)
    assert back.error == "slow down"
    now = fleet.pool.observe().now
    assert 590 < back.run_at - now <= 600
    fleet.pool.cancel(item)
    fleet.may_stay = True  # the fork server waits for it: at most until it is due


@each_isolation
def test_when_one_job_is_throttled_the_whole_pool_waits(fleet: Fleet, isolation: str) -> None:
    fleet.set(handler="jobs:throttled_at_first", isolation=isolation, max_workers=1)
    fleet.set(start_on_push=True)
    fleet.pool.push_many([fleet.job(delay=1.5)] * 4)
    fleet.until_done(4)
    first, *others = (float(at) for *_, at in fleet.happened("start"))
    assert len(others) == 4, "the first one once more"
    assert min(others) - first > 1.4
    assert [item.attempts for item in fleet.pool.items()] == [1, 1, 1, 1]


@pytest.mark.parametrize("how", ["timeout", "connection", "429", "503"])
def test_failures_that_ask_to_come_again_are_transient(fleet: Fleet, how: str) -> None:
    fleet.set(handler="jobs:refused_at_first")
    item = run_one(fleet, how=how, max_retries=1)
    assert (item.result, item.attempts, item.given_back) == (3, 1, 2)


def test_other_http_errors_are_failures(fleet: Fleet) -> None:
    fleet.set(handler="jobs:not_found")
    assert run_one(fleet, "poisoned", max_retries=1).error.startswith("HttpError: HTTP 404")


def test_retries_wait_longer_each_time(fleet: Fleet) -> None:
    fleet.set(handler="jobs:fail", retry_base_seconds=0.3, idle_seconds=2.0)
    item = run_one(fleet, "poisoned", max_retries=3)
    first, second, third = (float(at) for *_, at in fleet.happened("start"))
    assert 0.15 <= second - first < 0.3 + 1.0, "0.3 s, up to half of it taken away by chance"
    assert 0.3 <= third - second < 0.6 + 1.0
    assert "Traceback" in item.error
    assert "in fail" in item.error


@each_isolation
def test_a_result_that_is_not_json_is_poison(fleet: Fleet, isolation: str) -> None:
    fleet.set(handler="jobs:not_json", isolation=isolation)
    item = run_one(fleet, "poisoned")
    assert fleet.starts()[item.id] == 1
    assert item.error.startswith('the result is not JSON: result["chart"] is bytes, which')
    assert item.error.endswith("The result was: {'chart': b'\\x89PNG', 'sharpe': 1.25}")


@each_isolation
def test_arguments_checkpoints_and_results_are_stored_as_plain_json(
    fleet: Fleet, isolation: str
) -> None:
    fleet.set(handler="jobs:rich", isolation=isolation)
    item = run_one(fleet, when=datetime.datetime(2026, 7, 1, 12, tzinfo=datetime.UTC))
    assert item.result == {
        "checkpoint": {"day": "2026-07-01", "n": 1},
        "argument": "2026-07-01T12:00:00+00:00",
        "sharpe": 1.25,
        "curve": [1, 2],
        "by year": {"2026": "0.10"},
    }


@each_isolation
@pytest.mark.parametrize("kind", ["KeyboardInterrupt", "GeneratorExit", "CancelledError", "Mute"])
def test_unusual_exception_keeps_its_traceback_and_the_worker(
    fleet: Fleet, isolation: str, kind: str
) -> None:
    fleet.set(handler="jobs:raise_unusual", isolation=isolation, max_workers=1)
    ids = [fleet.push(max_retries=1, kind=kind) for _ in range(2)]
    fleet.check()
    for item_id in ids:
        error = fleet.until_status(item_id, "poisoned").error
        assert error.startswith(f"{kind}: ")
        assert "in raise_unusual" in error
    assert len(fleet.workers()) == 1, "the second job has the worker of the first"


@each_isolation
def test_an_error_that_is_no_text_is_kept_as_far_as_it_goes(fleet: Fleet, isolation: str) -> None:
    fleet.set(handler="jobs:unspeakable", isolation=isolation)
    item = run_one(fleet, "poisoned", max_retries=1)
    assert item.error.startswith("ValueError: half a character: ?, and nothing: ")


# -- commands -------------------------------------------------------------------------------


@each_isolation
def test_command_gets_json_and_answers_in_json(fleet: Fleet, isolation: str) -> None:
    fleet.set(isolation=isolation)
    python(
        fleet,
        "import json, os, sys; data = json.load(sys.stdin);"
        "print(json.dumps([data['say'], os.environ['SPRAT_ITEM'], os.environ['SPRAT_ATTEMPT'],"
        "os.environ['SPRAT_FENCE'], os.environ['SPRAT_POOL'], os.getcwd()]))",
    )
    item = run_one(fleet, say="ü")
    directory = os.path.dirname(__file__)
    assert item.result == ["ü", item.id, "1", "1", "papers", directory]


def test_command_without_output_has_no_result(fleet: Fleet) -> None:
    command(fleet, "true")
    assert run_one(fleet).result is None


def test_failed_command_keeps_what_it_said(fleet: Fleet) -> None:
    command(fleet, "sh", "-c", "echo half; echo broken pipe dream >&2; exit 9")
    item = run_one(fleet, "poisoned", max_retries=2)
    assert item.attempts == 2
    assert item.error == "sh ended with exit code 9:\nbroken pipe dream"


def test_command_killed_by_a_signal(fleet: Fleet) -> None:
    command(fleet, "sh", "-c", "kill -9 $$")
    assert run_one(fleet, "poisoned", max_retries=1).error == "sh ended with signal 9"


def test_command_that_asks_to_be_tried_again(fleet: Fleet) -> None:
    marker = json.dumps(str(fleet.place / "tried"))
    command(
        fleet, "sh", "-c", f"test -e {marker} && exit 0; touch {marker}; echo later >&2; exit 75"
    )
    item = run_one(fleet, max_retries=1)
    assert (item.status, item.attempts, item.given_back) == ("done", 1, 1)


def test_command_that_prints_no_json(fleet: Fleet) -> None:
    command(fleet, "echo", "hello there")
    error = run_one(fleet, "poisoned", max_retries=1).error
    assert error.startswith("echo printed no JSON (")
    assert error.endswith("): hello there\n")


def test_command_that_does_not_exist_is_poison(fleet: Fleet) -> None:
    command(fleet, "no-such-program")
    item = run_one(fleet, "poisoned")
    assert item.attempts == 1
    assert item.error == "no-such-program cannot be run: No such file or directory"


def test_command_that_does_not_read_its_input(fleet: Fleet) -> None:
    command(fleet, "sh", "-c", "exec <&-; echo 1")
    assert run_one(fleet, say="x" * 500_000).result == 1
