"""Threads that use a store at the same time have a connection each, up to a limit; one thread has
one. A proxy between the store and the server counts them, and holds requests back until enough of
them are under way at the same time."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from patience import PATIENCE
from servers.redis import RedisServer, shared_server

from sprat.core.errors import InvalidInput
from sprat.store.open_store import open_store
from sprat.store.redis.address import parse
from sprat.store.store import Store

THREADS = 8


class Proxy:
    """Passes requests on to a server, and counts the conversations that are under way."""

    def __init__(self, port: int) -> None:
        self.opened = self.now = self.most = 0
        self.gate: threading.Barrier | None = None  # for requests on their way to the server
        self._there = port
        self._counting = threading.Lock()
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=100)
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            server = socket.create_connection(("127.0.0.1", self._there))
            self.opened += 1
            self._sockets += client, server
            threading.Thread(target=self._pass_on, args=(client, server), daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        """A request, its answer, and so on: all of them fit into one read."""
        try:
            while request := client.recv(1 << 16):
                self._count(1)
                if self.gate is not None:
                    self.gate.wait(PATIENCE / 2)
                server.sendall(request)
                answer = server.recv(1 << 16)
                self._count(-1)
                client.sendall(answer)
        except (OSError, threading.BrokenBarrierError):
            pass
        finally:
            client.close()
            server.close()

    def _count(self, more: int) -> None:
        with self._counting:
            self.now += more
            self.most = max(self.most, self.now)

    def hold(self, requests: int) -> threading.Barrier:
        """Hold requests back until this many of them are here. Later ones pass."""
        self.gate = threading.Barrier(requests, action=self.let_pass)
        return self.gate

    def let_pass(self) -> None:
        self.gate = None

    def cut(self) -> None:
        """End all connections, as a restart of the server does."""
        for one in self._sockets:
            try:
                one.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
        self._sockets.clear()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    server = shared_server()
    yield server
    server.forget("{connections}*")


@pytest.fixture
def proxy(server: RedisServer) -> Iterator[Proxy]:
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@contextmanager
def opened(proxy: Proxy, options: str = "") -> Iterator[Store]:
    url = f"redis://127.0.0.1:{proxy.port}/0?store=connections{options}"
    with open_store(url) as store:
        store.pool("papers").configure(start_on_push=False)
        yield store


def push_together(store: Store, threads: int = THREADS, each: int = 1) -> list[str]:
    ids: list[str] = []
    pool = store.pool("papers")

    def push() -> None:
        ids.extend(pool.push(n) for n in range(each))

    pushing = [threading.Thread(target=push) for _ in range(threads)]
    for thread in pushing:
        thread.start()
    for thread in pushing:
        thread.join(PATIENCE)
    return ids


def test_threads_do_not_wait_for_each_others_answers(proxy: Proxy) -> None:
    with opened(proxy) as store:
        ids: list[str] = []
        for _ in range(2):  # with new connections, and with these
            gate = proxy.hold(THREADS)
            ids += push_together(store)
            assert not gate.broken, "the requests came one after the other"
        assert len(set(ids)) == 2 * THREADS
        assert store.pool("papers").counts().pending == 2 * THREADS
    assert (proxy.opened, proxy.most) == (THREADS, THREADS)


def test_one_thread_has_one_connection(proxy: Proxy) -> None:
    with opened(proxy) as store:
        for n in range(20):
            store.pool("papers").push(n)
    assert proxy.opened == 1


@pytest.mark.parametrize("limit", [1, 3])
def test_there_are_no_more_connections_than_the_url_allows(proxy: Proxy, limit: int) -> None:
    with opened(proxy, f"&connections={limit}") as store:
        gate = proxy.hold(limit)
        ids = push_together(store, threads=3 * limit)
        assert not gate.broken
        assert len(set(ids)) == 3 * limit
    assert (proxy.opened, proxy.most) == (limit, limit)


def test_every_connection_comes_back_after_it_ended(proxy: Proxy) -> None:
    with opened(proxy) as store:
        proxy.hold(THREADS)
        assert len(push_together(store)) == THREADS
        proxy.cut()
        assert len(push_together(store, each=10)) == 10 * THREADS
        assert store.pool("papers").counts().pending == 11 * THREADS


def test_a_fork_leaves_all_connections_to_the_parent(proxy: Proxy) -> None:
    with opened(proxy) as store:
        proxy.hold(THREADS)
        assert len(push_together(store)) == THREADS
        before = proxy.opened
        pid = os.fork()
        if not pid:
            os._exit(0 if len(push_together(store, threads=2, each=5)) == 10 else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        assert proxy.opened > before, "the child has its own"
        before = proxy.opened
        assert len(push_together(store)) == THREADS
        assert proxy.opened == before, "the parent's are as they were"


def test_a_closed_store_ends_all_its_connections(proxy: Proxy) -> None:
    with opened(proxy) as store:
        proxy.hold(THREADS)
        assert len(push_together(store)) == THREADS
        connections = list(store.backend._client._connections)  # type: ignore[attr-defined]
        assert sum(lazy.connection is not None for lazy in connections) == THREADS
    assert not any(lazy.connection is not None for lazy in connections)


@pytest.mark.parametrize("wrong", ["0", "1001", "many", "-1", "1.5", "²"])
def test_a_wrong_number_of_connections_is_named(wrong: str) -> None:
    with pytest.raises(InvalidInput, match="write a number from 1 to 1000"):
        parse(f"redis://host?connections={wrong}")
