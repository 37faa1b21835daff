"""Pauses, held jobs and transient failures are shown with their reasons by every command."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from sprat.core import model
from sprat.core.model import Settlement, WorkItem
from sprat.store.store import Store

Run = Callable[..., "object"]

THROTTLED = "HTTP 429 Too Many Requests"
UNKNOWN = "no worker of the pool has task papers:old"


def flat(text: str) -> str:
    return " ".join(text.split())


def claimed(store: Store, *, task: str | None = None) -> WorkItem:
    """A new job in the hands of a worker."""
    pool = store.pool("numbers")
    pool.push({"n": 1}, task=task)
    store.workers.register(
        model.WorkerRegistration(worker_id="w1", pool_id="numbers", lease_seconds=600.0)
    )
    item = pool.claim("w1")
    assert item
    return item


def park(store: Store) -> WorkItem:
    item = claimed(store, task="papers:old")
    held = Settlement(
        item_id=item.id, token=item.token, outcome=model.PARK, error=UNKNOWN, delay=60.0
    )
    assert store.pool("numbers").settle_many([held]) == (True,)
    return item


def failed_transiently(store: Store, times: int) -> WorkItem:
    pool, item = store.pool("numbers"), claimed(store)
    for n in range(1, times + 1):
        assert pool.fail(item, THROTTLED, transient=True, delay=60.0 if n == times else 0.0)
        if n < times:
            again = pool.claim("w1")
            assert again
            item = again
    return item


# -- pauses --------------------------------------------------------------------------------------


def test_explain_and_status_show_a_pause_with_reason_and_end(sprat: Run, store: Store) -> None:
    store.pool("numbers").pause(240, reason=THROTTLED)
    sentence = f"paused for 4 min more: {THROTTLED}"
    assert sentence in flat(sprat("explain", "numbers").out)
    assert sentence in flat(sprat("status", "numbers").out)
    assert f"numbers is {sentence}" in flat(sprat("status").out)
    for command in ("explain", "status"):
        (pool,) = sprat(command, "--json").data["pools"]
        assert (pool["paused"], pool["pause_reason"]) == (True, THROTTLED)
        assert 200 < pool["paused_seconds"] <= 240


def test_pause_without_an_end_names_the_command_that_ends_it(sprat: Run, store: Store) -> None:
    assert sprat("pause", "numbers", "--reason", "the API is down").code == 0
    sentence = "paused until `sprat resume`: the API is down"
    assert sentence in flat(sprat("explain").out)
    assert sentence in flat(sprat("status").out)
    (pool,) = sprat("status", "--json").data["pools"]
    assert (pool["paused"], pool["paused_seconds"]) == (True, None)
    assert f"numbers     {sentence}" in sprat("doctor").out
    sprat("resume", "numbers")
    (pool,) = sprat("explain", "--json").data["pools"]
    assert (pool["paused"], pool["pause_reason"]) == (False, None)


def test_watch_shows_the_reason_of_a_pause(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.cli.watch.STILL_SECONDS", 0.0)
    store.pool("numbers").push({"n": 1})
    store.pool("numbers").pause(240, reason=THROTTLED)
    assert (
        f"paused for 4 min more: {THROTTLED}" in sprat("watch", "numbers", "--timeout", "0.3").err
    )


# -- unknown tasks -------------------------------------------------------------------------------


def test_jobs_of_an_unknown_task_are_reported_as_held(sprat: Run, store: Store) -> None:
    item = park(store)
    sentence = "1 job is held: no worker knows task papers:old"
    for command in ("explain", "status", "status numbers"):
        assert sentence in flat(sprat(*command.split()).out)
    warnings = [line for line in sprat("doctor").out.splitlines() if line.startswith("warn")]
    assert any(sentence in line and "sprat jobs" in line for line in warnings)
    for command in ("explain", "status"):
        (pool,) = sprat(command, "--json").data["pools"]
        assert pool["parked"] == {"papers:old": 1}
    (row,) = sprat("jobs", "list", "numbers").out.splitlines()[1:]
    assert row.startswith(f"{item.id}  ready (held)")
    assert "papers:old: no" in row
    shown = sprat("jobs", "show", item.id).out
    assert f"ready (held: {UNKNOWN})" in shown
    assert "papers:old" in shown
    assert sprat("jobs", "show", item.id, "--json").data["hold"] == UNKNOWN


def test_watch_says_that_jobs_are_held(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.cli.watch.STILL_SECONDS", 0.0)
    park(store)
    assert "no worker knows task papers:old" in sprat("watch", "numbers", "--timeout", "0.3").err


def test_jobs_list_shows_the_task_of_each_job(sprat: Run, store: Store) -> None:
    store.pool("numbers").push({"n": 1}, task="papers:new")
    assert "new(n=1)" in sprat("jobs", "list", "numbers").out


# -- transient failures --------------------------------------------------------------------------


def test_transient_failures_are_shown_with_their_bound(sprat: Run, store: Store) -> None:
    item = failed_transiently(store, 4)
    lines = [flat(line) for line in sprat("jobs", "show", item.id).out.splitlines()]
    assert "transient failures 4 of 10" in lines
    assert "given back 4" in lines
    (pool,) = sprat("status", "--json").data["pools"]
    assert pool["retrying"] == 1
    assert "1 delayed after transient failures, the most 4 of 10" in flat(
        sprat("status", "numbers").out
    )
    assert "transient failures" not in sprat("doctor").out, "far from the bound"


def test_jobs_that_wait_for_their_first_attempt_are_not_retrying(sprat: Run, store: Store) -> None:
    store.pool("numbers").push({"n": 1}, delay=60)
    (pool,) = sprat("status", "--json").data["pools"]
    assert (pool["delayed"], pool["retrying"]) == (1, 0)
    assert "transient" not in sprat("status", "numbers").out


@pytest.mark.parametrize("times", [8, 11])
def test_doctor_warns_of_jobs_close_to_or_past_the_bound(
    sprat: Run, store: Store, times: int
) -> None:
    item = failed_transiently(store, times)
    out = flat(sprat("doctor").out)
    assert f"such as {item.id} with {min(times, 10)} of 10 transient failures: {THROTTLED}" in out


def test_without_a_bound_doctor_does_not_warn(sprat: Run, store: Store) -> None:
    store.pool("numbers").configure(max_transient=None)
    item = failed_transiently(store, 12)
    assert "transient failures" not in sprat("doctor").out
    shown = flat(sprat("jobs", "show", item.id).out)
    assert "transient failures 12, without a bound" in shown


# -- outages -------------------------------------------------------------------------------------


def test_doctor_tells_of_leases_that_an_outage_renewed(
    sprat: Run, store: Store, place: Path
) -> None:
    claimed(store)
    with sqlite3.connect(place / "sprat.db") as db:
        db.execute("UPDATE worker_registry SET renewals = 1")
    db.close()
    (line,) = [line for line in sprat("doctor").out.splitlines() if "outage" in line]
    assert line.startswith("ok    workers     1 of them has a fresh lease since an outage")
