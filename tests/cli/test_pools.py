"""`sprat pools`: listing pools, and deleting one that is no longer needed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from worlds import World

from sprat.config.trigger import Trigger
from sprat.core import model
from sprat.store.store import Store
from sprat.triggers import registry

Run = Callable[..., Any]


def test_pools_are_listed_by_name(sprat: Run, store: Store) -> None:
    store.pool("zebra").push(1)
    assert sprat("pools", "list").out.splitlines() == store.pools()
    assert sprat("pools", "list", "--json").data == {"pools": store.pools()}


def test_a_pool_is_deleted(sprat: Run, store: Store) -> None:
    pool = store.pool("old")
    pool.cancel(pool.push(1))
    assert sprat("pools", "delete", "old").out == "pool old is deleted\n"
    assert "old" not in store.pools()
    again = sprat("pools", "delete", "old")
    assert (again.code, again.err.startswith("sprat: there is no pool 'old'")) == (2, True)


def test_a_pool_in_use_is_kept_with_the_commands_that_end_it(sprat: Run, store: Store) -> None:
    store.pool("old").push_many([1, 2])
    registration = model.WorkerRegistration(worker_id="w1", pool_id="old", lease_seconds=600.0)
    store.workers.register(registration)
    answer = sprat("pools", "delete", "old")
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == (
        "sprat: pool 'old' has 2 waiting jobs and 1 live worker: run "
        "`sprat jobs cancel --all-pending old` and `sprat workers drain --pool old` first\n"
    )
    assert sprat("jobs", "cancel", "--all-pending", "old").code == 0
    assert sprat("workers", "drain", "--pool", "old").code == 0
    store.workers.update_status("w1", model.TERMINATED)
    assert sprat("pools", "delete", "old", "--json").data == {"deleted": "old"}


def test_triggers_that_name_a_deleted_pool_are_named(sprat: Run, store: Store) -> None:
    store.pool("old").configure(max_workers=1)
    registry.save(store, Trigger(name="nightly", type="cron", schedule="0 3 * * *", pool="old"))
    answer = sprat("pools", "delete", "old")
    assert answer.code == 0
    assert "the trigger nightly still names the pool: `sprat triggers remove nightly`" in answer.err


def test_a_pool_is_deleted_on_every_store(sprat: Run, shared: World) -> None:
    with shared.open() as store:
        store.pool("old").cancel(store.pool("old").push(1))
    assert sprat("pools", "delete", "old", "--url", shared.url).code == 0
    assert sprat("pools", "list", "--url", shared.url).out == "no pools\n"
