"""Many lanes: a claim in an SQLite file costs no more for groups and priorities of others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sprat.core import model, payload
from sprat.store.open_store import open_store
from sprat.store.store import Store


def statements(store: Store, act: Any) -> int:
    """How many statements SQLite runs meanwhile."""
    ran: list[str] = []
    db = store.backend._connection._db  # type: ignore[attr-defined]
    db.exec_trace = lambda _, sql, __: ran.append(sql) or True
    try:
        act()
    finally:
        db.exec_trace = None
    return len(ran)


def test_a_claim_does_not_visit_lanes_that_are_not_for_the_worker(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        pool = store.pool("papers")
        store.workers.register(model.WorkerRegistration(worker_id="w", capabilities=("gpu",)))

        def lanes(start: int) -> list[model.NewItem]:
            return [
                payload.new_item(n, group=f"g{n}", priority=n, tenant="acme")
                for n in range(start, start + 500)
            ]

        pool.push_items(lanes(0))
        pool.push(1, group="gpu", priority=-5, tenant="acme")
        few = statements(store, lambda: pool.claim("w"))
        pool.push_items(lanes(500))
        pool.push(2, group="gpu", priority=-7, tenant="acme")
        more: list[Any] = []
        assert statements(store, lambda: more.append(pool.claim("w"))) <= few
        assert more[0].data == 2
        assert few < 30
