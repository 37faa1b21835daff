"""Jobs named by the beginning of their id, or chosen by state, error, key, tenant and age."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from worlds import World

from sprat.core import model
from sprat.store.store import Store

Run = Callable[..., Any]


@pytest.fixture
def failed(store: Store) -> dict[str, str]:
    """Failed jobs by their error, in the order of their names; one more is ready."""
    pool = store.pool("numbers")
    registration = model.WorkerRegistration(worker_id="w1", pool_id="numbers", lease_seconds=600.0)
    store.workers.register(registration)
    ids: dict[str, str] = {}
    for error in ("KeyError: token", "Timeout: 1", "Timeout: 2"):
        ids[error] = pool.push({"n": 1}, tenant="acme" if error == "Timeout: 2" else None)
        item = pool.claim("w1")
        assert item
        pool.fail(item, error, poison=True)
    ids["ready"] = pool.push({"n": 2}, key="k1")
    return ids


def listed(answer: Any) -> list[str]:
    return [item["id"] for item in answer.data["items"]]


# -- ids ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["show", "cancel", "requeue", "retry"])
def test_the_beginning_of_an_id_names_a_job(sprat: Run, store: Store, action: str) -> None:
    item_id = store.pool("other").push(1)
    store.pool("numbers").push(2, delay=60)
    if action in ("requeue", "retry"):
        store.pool("other").cancel(item_id)
    assert sprat("jobs", action, item_id[:-4]).code == 0
    states = {"show": "pending", "cancel": "cancelled"}
    assert store.get(item_id).status == states.get(action, "pending")


def test_an_ambiguous_or_unknown_beginning_is_one_sentence(sprat: Run, store: Store) -> None:
    ids = store.pool("numbers").push_many([1, 2])
    ambiguous = sprat("jobs", "show", ids[0][:12])
    assert ambiguous.code == 2
    assert ambiguous.err == (
        f"sprat: several jobs begin with '{ids[0][:12]}', such as {ids[0]} and {ids[1]}: "
        "give more of the id\n"
    )
    store.pool("other").push(3)
    assert "several jobs begin with '01'" in sprat("jobs", "cancel", "01").err
    unknown = sprat("jobs", "show", "gone")
    assert unknown.code == 2
    assert unknown.err == "sprat: no job has the id 'gone': `sprat jobs list POOL` shows them\n"
    assert sprat("jobs", "show", "").code == 2


def test_the_beginning_of_an_id_is_enough_on_every_store(sprat: Run, shared: World) -> None:
    with shared.open() as store:
        item_id = store.pool("numbers").push({"n": 1})
    shown = sprat("jobs", "show", item_id[:20], "--url", shared.url, "--json")
    assert shown.data["id"] == item_id


# -- filters ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ("--error Timeout", ["Timeout: 1", "Timeout: 2"]),
        ("--status failed --newest", ["Timeout: 2", "Timeout: 1", "KeyError: token"]),
        ("--status poisoned --error Key", ["KeyError: token"]),
        ("--tenant acme", ["Timeout: 2"]),
        ("--key k1", ["ready"]),
        ("--status ready", ["ready"]),
        ("--status pending", ["ready"]),
        ("--status running", []),
        ("--older 1h", []),
        ("--newer 1h --error 1", ["Timeout: 1"]),
        ("--newest --limit 1", ["ready"]),
    ],
)
def test_lists_are_filtered(
    sprat: Run, failed: dict[str, str], flags: str, names: list[str]
) -> None:
    answer = sprat("jobs", "list", "numbers", *flags.split(), "--json")
    assert listed(answer) == [failed[name] for name in names]


def test_a_filtered_list_names_the_command_for_the_rest(sprat: Run, failed: dict[str, str]) -> None:
    first = ("jobs", "list", "numbers", "--error", "Timeout: ", "--newest", "--limit", "1")
    hint = sprat(*first).err.strip()
    last = failed["Timeout: 2"]
    options = f"--error 'Timeout: ' --newest --limit 1 --after {last}"
    assert hint == f"more: sprat jobs list numbers {options}"
    assert listed(sprat(*first, "--after", last, "--json")) == [failed["Timeout: 1"]]


def test_states_are_shown_in_words_that_the_filter_takes(
    sprat: Run, store: Store, failed: dict[str, str]
) -> None:
    store.pool("numbers").push(1, delay=600)
    assert store.pool("numbers").claim("w1")
    rows = [line.split() for line in sprat("jobs", "list", "numbers").out.splitlines()[1:]]
    assert [row[1] for row in rows] == ["failed", "failed", "failed", "running", "delayed"]
    for row in rows:
        shown = sprat("jobs", "list", "numbers", "--status", row[1], "--json")
        assert row[0] in listed(shown)


@pytest.mark.parametrize("verb", ["requeue", "retry"])
def test_failed_jobs_are_requeued_by_their_error(
    sprat: Run, store: Store, failed: dict[str, str], verb: str
) -> None:
    pool = store.pool("numbers")
    done = sprat("jobs", verb, "--pool", "numbers", "--error", "Timeout", "--newer", "1h")
    assert done.out == "2 jobs requeued\n"
    assert pool.counts().poisoned == 1
    assert sprat("jobs", verb, "--all-poisoned", "numbers", "--error", "gone", "--json").data == {
        "requeued": 0
    }
    pool.cancel(failed["ready"])
    answer = sprat("jobs", verb, "--pool", "numbers", "--status", "cancelled", "--json")
    assert answer.data == {"requeued": 1}


def test_waiting_jobs_are_cancelled_by_a_filter(
    sprat: Run, store: Store, failed: dict[str, str]
) -> None:
    store.pool("numbers").push_many([1, 2], delay=60)
    assert sprat("jobs", "cancel", "--pool", "numbers", "--key", "k1").out == "1 job cancelled\n"
    answer = sprat("jobs", "cancel", "--pool", "numbers", "--status", "delayed", "--json")
    assert answer.data == {"cancelled": 2}
    assert store.pool("numbers").counts().poisoned == 3


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cancel --pool numbers", "--pool needs a filter: --all-pending numbers means all"),
        ("requeue --pool numbers", "--pool needs a filter: --all-failed numbers means all"),
        ("cancel abc --pool numbers --key k", "name jobs by their ids, or a pool"),
        ("requeue --key k1", "name jobs by their ids, or a pool"),
        ("requeue --all-poisoned numbers --status failed", "names a status already"),
        ("list numbers --older soon", "it must be a time such as"),
    ],
)
def test_a_choice_that_is_none_is_refused(
    sprat: Run, failed: dict[str, str], line: str, said: str
) -> None:
    words = [failed["ready"] if word == "abc" else word for word in line.split()]
    answer = sprat("jobs", *words)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_filters_do_not_go_with_ids(sprat: Run, failed: dict[str, str]) -> None:
    answer = sprat("jobs", "cancel", failed["ready"], "--tenant", "acme")
    assert answer.code == 2
    assert "filters go with a pool" in answer.err


# -- nothing to do ------------------------------------------------------------------------------


def test_cancelling_a_finished_job_says_that_it_is_finished(
    sprat: Run, store: Store, failed: dict[str, str]
) -> None:
    pool = store.pool("numbers")
    item = pool.claim("w1")
    assert item
    pool.complete(item)
    answer = sprat("jobs", "cancel", item.id)
    assert (answer.code, answer.out) == (0, "0 jobs cancelled\n")
    assert answer.err == f"sprat: job {item.id} is done already\n"
    answer = sprat("jobs", "retry", item.id[:-1])
    assert answer.out == "0 jobs requeued\n"
    assert answer.err == (
        f"sprat: job {item.id} is done: only failed, cancelled and backlog ones can be requeued\n"
    )
