"""The descriptor that wakes a worker whose claim was taken away."""

from __future__ import annotations

import os
import select
from multiprocessing.connection import Connection

from patience import eventually
from processes import beside, hear
from servers import postgres

from sprat.core.model import WorkerRegistration, WorkItem
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

W1 = WorkerRef(worker_id="w1", incarnation=1)


def rings(bell: int | None, seconds: float = 30.0) -> bool:
    assert bell is not None
    poll = select.poll()
    poll.register(bell, select.POLLIN)
    return bool(poll.poll(seconds * 1000))


def claimed(store: Store) -> WorkItem:
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=600))
    pool = store.pool("papers")
    pool.push("work")
    item = pool.claim("w1")
    assert item is not None
    return item


def ref(item: WorkItem) -> list[ClaimRef]:
    return [ClaimRef(item_id=item.id, token=item.token)]


def test_bell_is_opened_once(store: Store) -> None:
    first = store.backend.cancel_bell(W1)
    assert first is not None
    assert store.backend.cancel_bell(W1) == first


def test_bell_outlasts_a_restart_of_the_server(server: postgres.Server) -> None:
    with open_store(server.url()) as store, open_store(server.url()) as other:
        item = claimed(store)
        bell = store.backend.cancel_bell(W1)
        server.stop("immediate")
        assert rings(bell), "the connection ended"
        server.start()
        assert store.backend.lost(ref(item)) == ()
        bell = store.backend.cancel_bell(W1)
        assert not rings(bell, 0.0)
        other.pool("papers").cancel(item.id)
        assert rings(bell)
        assert store.backend.lost(ref(item)) == (item.id,)


def test_there_is_no_bell_without_a_server(server: postgres.Server) -> None:
    with open_store(server.url()) as store:
        server.stop("fast")
        assert store.backend.cancel_bell(W1) is None
        server.start()
        assert store.backend.cancel_bell(W1) is not None


def _listen_in_child(pipe: Connection, store: Store) -> None:
    bell = store.backend.cancel_bell(W1)
    pipe.send(bell is not None and os.fstat(bell).st_ino)
    pipe.send(rings(bell))


def test_child_opens_a_bell_of_its_own(store: Store, pool: WorkPool) -> None:
    item = claimed(store)
    bell = store.backend.cancel_bell(W1)
    assert bell is not None
    child, pipe = beside(_listen_in_child, store)
    assert hear(pipe) not in (False, os.fstat(bell).st_ino)
    pool.cancel(item.id)
    assert hear(pipe) is True
    child.join(60)
    assert rings(bell), "the child left the bell of its parent alone"
    assert store.backend.lost(ref(item)) == (item.id,)


def test_there_is_no_bell_behind_a_pooler(url: str) -> None:
    with open_store(f"{url}?pooled=yes") as store:
        assert store.backend.cancel_bell(W1) is None


def test_closed_store_closes_its_bell(url: str) -> None:
    control = postgres.control(url)
    listening = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'LISTEN%cancel%'"
    with open_store(url) as store:
        assert store.backend.cancel_bell(W1) is not None
        assert control.execute(listening).fetchone() == (1,)
    eventually(lambda: control.execute(listening).fetchone() == (0,))
