"""Two processes that register one new worker id at the same moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from worlds import World

from sprat.core.model import WorkerRegistration, WorkItem
from sprat.store.postgres import workers
from sprat.store.postgres.transaction import PostgresTransaction
from sprat.store.store import Store

TWIN = WorkerRegistration(worker_id="twin")


def test_who_registers_first_and_claims_before_the_second_is_known_is_fenced(
    store: Store, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second has looked whether there is such a worker, and has not been written yet."""
    pool = store.pool("papers")
    pool.push("a")
    first: list[WorkItem | None] = []
    run = PostgresTransaction.run

    def meanwhile(tx: PostgresTransaction, statement: str, values: Sequence[Any] = ()) -> Any:
        if statement == workers.REGISTER and not first:
            first.append(None)
            other = world.open()
            first[0] = other.pool("papers").claim(other.workers.register(TWIN))
        return run(tx, statement, values)

    monkeypatch.setattr(PostgresTransaction, "run", meanwhile)
    second = store.workers.register(TWIN)
    assert second.incarnation == 2
    (claim,) = first
    assert claim is not None
    assert not pool.complete(claim)
    again = pool.claim(second)
    assert again is not None
    assert pool.complete(again)
