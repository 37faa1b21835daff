"""A Redis cluster that moves the store's slot from one node to another while it is in use."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
from patience import PATIENCE, eventually
from servers.redis import RedisServer, free_port

from sprat.core.errors import StoreUnavailable
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.store import Store


class Cluster:
    """Two nodes; the first has all slots."""

    def __init__(self) -> None:
        ports = [free_port(), free_port()]
        self.nodes = [
            RedisServer("--cluster-enabled", "yes", "--cluster-port", str(port)) for port in ports
        ]
        self.source, self.target = self.nodes
        self.ids = [node.ask("CLUSTER", "MYID") for node in self.nodes]
        self.slot = self.source.ask("CLUSTER", "KEYSLOT", "{sprat}")
        self.source.ask("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        self.source.ask("CLUSTER", "MEET", "127.0.0.1", self.target.port, ports[1])
        for node in self.nodes:
            eventually(lambda node=node: "cluster_state:ok" in node.ask("CLUSTER", "INFO"))
        eventually(lambda: all(i in self.source.ask("CLUSTER", "NODES") for i in self.ids))

    def begin_move(self) -> None:
        self.target.ask("CLUSTER", "SETSLOT", self.slot, "IMPORTING", self.ids[0])
        self.source.ask("CLUSTER", "SETSLOT", self.slot, "MIGRATING", self.ids[1])

    def move_keys(self, most: int) -> None:
        for key in self.source.ask("CLUSTER", "GETKEYSINSLOT", self.slot, most):
            self.source.ask("MIGRATE", "127.0.0.1", self.target.port, key, 0, 5000)

    def end_move(self) -> None:
        self.move_keys(1000)
        for node in (self.target, self.source):
            node.ask("CLUSTER", "SETSLOT", self.slot, "NODE", self.ids[1])

    def stop(self) -> None:
        for node in self.nodes:
            node.stop()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    cluster = Cluster()
    yield cluster
    cluster.stop()


def retried(store: Store) -> threading.Event:
    """Set when a verb of the store was refused by a node and is about to be sent again."""
    refused = threading.Event()
    disconnect = store.backend._client._disconnect  # type: ignore[attr-defined]

    def note(*connections: object) -> None:
        refused.set()
        disconnect(*connections)

    store.backend._client._disconnect = note  # type: ignore[attr-defined]
    return refused


def test_verbs_wait_for_a_slot_that_moves_and_go_on(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(cluster.source.url) as store:
        pool = store.pool("papers")
        store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))
        pool.push_many(range(3))
        cluster.begin_move()
        cluster.move_keys(1)
        with monkeypatch.context() as patched:
            patched.setattr("sprat.store.redis.client.PATIENCE_SECONDS", 0.1)
            with pytest.raises(StoreUnavailable, match="is moving the store to another node"):
                pool.push("refused")
        monkeypatch.setattr("sprat.store.redis.client.PATIENCE_SECONDS", PATIENCE)
        refused, done = retried(store), []
        pusher = threading.Thread(target=lambda: done.append(pool.push("waits")))
        pusher.start()
        assert refused.wait(PATIENCE)
        cluster.end_move()
        pusher.join(PATIENCE)
        assert len(done) == 1
        assert [item.data for item in pool.claim_many("w1", 9)] == [0, 1, 2, "waits"]
        assert cluster.source.ask("DBSIZE") == 0
