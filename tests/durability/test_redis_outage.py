"""A Redis server that was away: what its next run does with the leases, and the cancel signals."""

from __future__ import annotations

import os
import select
from collections.abc import Callable, Iterator

import pytest
from patience import PATIENCE, eventually
from servers.redis import RedisServer

from sprat.core import leases
from sprat.core.errors import StoreUnavailable
from sprat.core.model import WorkerRecord, WorkerRegistration, WorkItem
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.open_store import open_store
from sprat.store.redis import client as redis_client
from sprat.store.redis.client import RedisClient
from sprat.store.store import Store

LEASE = 1000.0
W1 = WorkerRef(worker_id="w1")


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = RedisServer("--appendfsync", "always")
    yield server
    server.stop()


def enrolled(store: Store, worker_id: str = "w1", lease_seconds: float = LEASE) -> WorkerRecord:
    return store.workers.register(
        WorkerRegistration(worker_id=worker_id, pool_id="papers", lease_seconds=lease_seconds)
    )


def shown(store: Store, worker_id: str = "w1") -> WorkerRecord:
    record = store.workers.get(worker_id)
    assert record is not None
    return record


def restart(server: RedisServer) -> None:
    server.kill()
    server.start()


def claimed(store: Store) -> WorkItem:
    store.pool("papers").push("work")
    item = store.pool("papers").claim("w1")
    assert item is not None
    return item


def ref(item: WorkItem) -> ClaimRef:
    return ClaimRef(item_id=item.id, token=item.token)


def touched_until(store: Store, renewals: int) -> bool:
    store.backend.touch()
    return shown(store).renewals == renewals


# -- claims --------------------------------------------------------------------------------------


@pytest.mark.parametrize("wanted", [4, 2, 5])
def test_a_claim_whose_answer_was_given_up_is_found_by_the_next(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch, wanted: int
) -> None:
    with open_store(server.url) as store:
        pool = store.pool("papers")
        enrolled(store)
        pool.push_many(range(10))
        with monkeypatch.context() as patched:
            patched.setattr(redis_client, "PATIENCE_SECONDS", -1.0)
            patched.setattr(RedisClient, "_once", without_answer(RedisClient._once))
            with pytest.raises(StoreUnavailable):
                pool.claim_many("w1", 4)
        assert pool.counts().claimed == 4
        found = pool.claim_many("w1", wanted)
        assert [item.data for item in found] == [0, 1, 2, 3][:wanted]
        assert [item.attempts for item in found] == [1] * len(found)
        assert pool.counts().claimed == len(found), "what was not asked for is handed back"
        assert [item.data for item in pool.claim_many("w1", 1)] == [len(found)]


def without_answer(once: Callable[..., object]) -> Callable[..., object]:
    """Carries out a command, and loses its answer."""

    def lossy(self: RedisClient, *about: object) -> object:
        once(self, *about)
        raise OSError("the connection is lost")

    return lossy


# -- leases --------------------------------------------------------------------------------------


def test_another_run_of_the_server_renews_leases_however_short_it_was_away(
    server: RedisServer,
) -> None:
    with open_store(server.url) as store:
        before = enrolled(store)
        restart(server)
        eventually(lambda: touched_until(store, 1))
        assert shown(store).lease_until > before.lease_until
        store.workers.heartbeat("w1")
        assert shown(store).renewals == 0


def test_where_info_is_not_allowed_the_gap_alone_counts(server: RedisServer) -> None:
    rights = ("+@all", "-@dangerous", "~{sprat}*", "&{sprat}*")
    server.ask("ACL", "SETUSER", "limited", "on", ">pw", *rights)
    with open_store(server.url.replace("redis://", "redis://limited:pw@")) as store:
        enrolled(store)
        assert server.ask("HGET", "{sprat}:clock", "run") == ""
        move(server, 10.0)
        store.backend.touch()
        assert shown(store).renewals == 0
        move(server, 0.8 * LEASE)
        store.backend.touch()
        assert shown(store).renewals == 1


def move(server: RedisServer, seconds: float) -> None:
    """Time passes, and nothing reaches the store."""
    server.ask("HINCRBY", "{sprat}:clock", "ahead", round(seconds * 1e6))


def test_exchange_marks_the_store_at_most_every_tenth_second(server: RedisServer) -> None:
    with open_store(server.url) as store:
        client = store.backend._client  # type: ignore[attr-defined]
        enrolled(store)
        due = [client.is_mark_due() for _ in range(3)]
        assert due == [True, False, False]
        client._marked_at -= leases.TOUCH_SECONDS
        marked = server.ask("HGET", "{sprat}:clock", "mark")
        move(server, 1.0)
        assert store.pool("papers").claim("w1") is None
        assert server.ask("HGET", "{sprat}:clock", "mark") > marked


def test_shortest_lease_is_known_without_a_visit_to_the_workers(server: RedisServer) -> None:
    """A mark must not cost the more the larger the fleet is."""
    with open_store(server.url) as store:
        shortest = lambda: float(server.ask("HGET", "{sprat}:clock", "shortest")) / 1e6  # noqa: E731
        enrolled(store, "w1", 100.0)
        enrolled(store, "w2", 40.0)
        enrolled(store, "w3", 60.0)
        assert shortest() == 40.0
        store.workers.update_status("w2", "terminated")
        assert shortest() == 40.0
        move(server, 11.0)  # past a quarter of it: all are visited
        store.backend.touch()
        assert shortest() == 60.0
        for worker_id in ("w1", "w3"):
            store.workers.update_status(worker_id, "terminated")
        move(server, 16.0)
        store.backend.touch()
        assert shortest() == float("inf")
        enrolled(store, "w4", 50.0)
        assert shortest() == 50.0


# -- cancel signals -------------------------------------------------------------------------------


def is_set(descriptor: int | None, seconds: float = PATIENCE) -> bool:
    assert descriptor is not None
    return bool(select.select([descriptor], [], [], seconds)[0])


def test_cancel_signal_is_set_until_the_lost_claims_were_asked_for(server: RedisServer) -> None:
    with open_store(server.url) as store, open_store(server.url) as other:
        enrolled(store)
        item = claimed(store)
        signal = store.backend.cancel_bell(W1)
        assert store.backend.cancel_bell(W1) == signal
        assert not is_set(signal, 0)
        assert store.backend.lost([ref(item)]) == ()
        assert other.pool("papers").cancel(item.id)
        assert is_set(signal)
        assert store.backend.lost([ref(item)]) == (item.id,)
        assert not is_set(signal, 0)


def test_cancel_signal_comes_back_after_a_restart(server: RedisServer) -> None:
    with open_store(server.url) as store:
        enrolled(store)
        item = claimed(store)
        signal = store.backend.cancel_bell(W1)
        server.kill()
        assert is_set(signal), "its connection ended"
        with pytest.raises(StoreUnavailable):
            store.workers.heartbeat("w1")
        assert store.backend.cancel_bell(W1) in (signal, None)
        server.start()
        assert store.backend.lost([ref(item)]) == ()
        fresh = store.backend.cancel_bell(W1)
        assert not is_set(fresh, 0)
        assert store.pool("papers").cancel(item.id)
        assert is_set(fresh)


def test_cancel_signal_of_a_fork_is_its_own(server: RedisServer) -> None:
    with open_store(server.url) as store:
        enrolled(store)
        item = claimed(store)
        signal = store.backend.cancel_bell(W1)
        child = os.fork()
        if not child:
            try:
                own = store.backend.cancel_bell(W1)
                is_heard = store.pool("papers").cancel(item.id) and is_set(own)
                store.backend.lost([ref(item)])
                os._exit(0 if is_heard and not is_set(own, 0) else 1)
            finally:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert is_set(signal), "the child did not clear it"
        assert store.backend.lost([ref(item)]) == (item.id,)
