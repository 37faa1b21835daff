"""The HTTP store: keys, secrets, lost answers, forks, TLS."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from houses import OPTIONS, House
from servers.orchestrator import OPEN, serving
from worlds import HttpWorld

from sprat.core import model
from sprat.core.errors import InvalidInput, StoreMismatch, StoreUnavailable
from sprat.server import keys
from sprat.server.routes.verbs import WHO
from sprat.store.backend import LOCAL_VERBS, PROTOCOL, Backend
from sprat.store.http.address import read
from sprat.store.http.backend import HttpBackend
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store
from sprat.store.store import Store


class Proxy:
    """Passes bytes on, and cuts the connection instead of passing on a chosen answer."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        self.cut_after: bytes | None = None  # lose the answer to the next request with this in it
        self.lost = 0
        self._lose_next = False
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        server = socket.create_connection(("127.0.0.1", self._target))
        threading.Thread(target=self._pass_answers, args=(server, client), daemon=True).start()
        with contextlib.suppress(OSError):
            while request := client.recv(65536):
                self._lose_next = self.cut_after is not None and self.cut_after in request
                server.sendall(request)
        server.close()

    def _pass_answers(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while answer := server.recv(65536):
                if self._lose_next:
                    self.cut_after, self._lose_next = None, False
                    self.lost += 1
                    break
                client.sendall(answer)
            client.shutdown(socket.SHUT_RDWR)
        client.close()

    def close(self) -> None:
        self._listening.close()


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


@pytest.fixture
def proxy(house: House) -> Iterator[Proxy]:
    proxy = Proxy(house.served.port)
    yield proxy
    proxy.close()


def opened(url: str, key: str) -> Store:
    return Store(HttpBackend(read(url, {"SPRAT_API_KEY": key})), url)


def test_every_verb_is_served_and_has_its_roles() -> None:
    verbs = {name for name in vars(Backend) if not name.startswith("_")}
    assert set(WHO) | LOCAL_VERBS == verbs
    assert {name for name in vars(HttpBackend) if not name.startswith("_")} >= set(WHO)


def test_a_worker_and_a_pusher_get_by_with_their_roles(house: House) -> None:
    pusher = opened(house.served.url, house.keys["pusher", "acme"])
    item_id = pusher.pool("papers").push({"n": 1}, key="k")
    worker = opened(house.served.url, house.keys["worker", "acme"])
    me = worker.workers.register(model.WorkerRegistration(worker_id="w", pool_id="papers"))
    item = worker.pool("papers").claim(me)
    assert item is not None
    assert worker.workers.heartbeat(me, holding=[item]).status == "active"
    assert worker.pool("papers").complete(item, "ok")
    assert pusher.get(item_id).result == "ok"
    assert worker.workers.update_status(me, "terminated")
    with pytest.raises(InvalidInput, match="role"):
        worker.pool("papers").push(1)


def test_a_lost_answer_to_a_push_stores_the_item_once(house: House, proxy: Proxy) -> None:
    pool = opened(proxy.url, house.keys["admin", None]).pool("papers")
    proxy.cut_after = b"/store/push"
    pool.push(1)
    assert proxy.lost == 1
    assert pool.counts().pending == 1


@pytest.mark.parametrize("role", ["admin", "worker"])
def test_a_lost_answer_to_a_claim_loses_no_item(house: House, proxy: Proxy, role: str) -> None:
    house.store.pool("papers").push_many(range(5))
    store = opened(proxy.url, house.keys[role, None])
    pool = store.pool("papers")
    me = store.workers.register(model.WorkerRegistration(worker_id="w", pool_id="papers"))
    first = pool.claim(me)
    proxy.cut_after = b"/store/exchange"
    second = pool.claim(me)
    assert proxy.lost == 1
    assert first is not None
    assert second is not None
    assert second.attempts == 1, "the claim that was lost is not charged"
    counts = house.store.pool("papers").counts()
    assert (counts.claimed, counts.pending) == (2, 3), "nothing is held that nobody knows of"
    proxy.cut_after = b"/store/exchange"
    assert pool.complete(first, 1), "and settling may be repeated"
    assert pool.complete(second, 2)


def test_a_server_that_is_not_there_is_told_in_one_sentence() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(StoreUnavailable, match=f"no answer from http://127.0.0.1:{port}"):
        opened(f"http://127.0.0.1:{port}", "k").pools()


def test_a_worker_of_an_older_version_is_refused(house: House) -> None:
    worker = house.client("worker", "acme")
    body = {"worker": {"worker_id": "w", "pool_id": "papers"}}
    for told in ({}, {"Sprat-Protocol": "1"}):
        reply = worker("POST", "/api/v1/store/register", body, told)
        assert (reply.status, reply.body["error"]) == (409, "store_mismatch")
        assert "install the orchestrator's version" in reply.body["message"]
    assert house.store.workers.list() == []
    assert (
        worker("POST", "/api/v1/store/register", body, {"Sprat-Protocol": PROTOCOL}).status == 200
    )


def test_an_orchestrator_of_an_older_version_is_named_as_the_cause() -> None:
    body = b'{"error": "invalid_input", "message": "Object contains unknown field `tasks`"}'
    answer = b"HTTP/1.1 422 Refused\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
    with answering(answer) as url, pytest.raises(StoreMismatch, match="older version of sprat"):
        opened(url, "k").pools()


@contextlib.contextmanager
def answering(answer: bytes) -> Iterator[str]:
    """The address of a server that gives one request this answer."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            connection.recv(65536)
            connection.sendall(answer)
            connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"


def test_something_else_that_speaks_http_is_recognised() -> None:
    page = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n<html"
    with answering(page) as url, pytest.raises(StoreMismatch, match="no orchestrator"):
        opened(url, "k").pools()


@pytest.mark.parametrize(
    "url", ["http://", "http://a:b", "http://u:p@h", "https://h?x=1", "http://h:99999", "http://é"]
)
def test_an_odd_address_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        read(url, {})


def test_a_key_shows_in_no_message(house: House) -> None:
    with pytest.raises(InvalidInput) as caught:
        opened(house.served.url, "sprat_secretsecret_topsecret").pools()
    assert "topsecret" not in str(caught.value)
    assert "topsecret" not in repr(read("https://h", {"SPRAT_API_KEY": "topsecret"}))
    with pytest.raises(InvalidInput, match="SPRAT_API_KEY"):
        read("https://h", {"SPRAT_API_KEY": "two words"})


def test_a_store_goes_on_after_a_fork(house: House) -> None:
    store = opened(house.served.url, house.keys["admin", None])
    store.pool("papers").push("parent")
    pid = os.fork()
    if not pid:
        code = 1
        try:
            store.pool("papers").push("child")
            code = 0
        finally:
            os._exit(code)
    for number in range(20):
        store.pool("papers").push(number)
    assert os.waitpid(pid, 0)[1] == 0
    assert store.pool("papers").counts().pending == 22


def test_threads_share_a_store(house: House) -> None:
    pool = opened(house.served.url, house.keys["admin", None]).pool("papers")
    threads = [threading.Thread(target=lambda: [pool.push(n) for n in range(20)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert pool.counts().pending == 160


# -- TLS ----------------------------------------------------------------------------------------


def with_tls(place: Path, url: str, **more: str) -> Store:
    return Store(HttpBackend(read(url, {"SPRAT_API_KEY": "k", **more})), url)


def test_tls_needs_an_authority_that_is_trusted(certificates: Path) -> None:
    place = certificates
    options = OPEN.replace(
        certificate=str(place / "server.pem"), private_key=str(place / "server.key")
    )
    with serving(Store(MemoryBackend()), options) as served:
        trusting = with_tls(place, served.url, SPRAT_CA_FILE=str(place / "ca.pem"))
        trusting.pool("papers").push(1)
        assert trusting.pool("papers").counts().pending == 1
        trusting.close()
        with pytest.raises(InvalidInput, match="cannot prove who it is"):
            with_tls(place, served.url).pools()


def test_mutual_tls_needs_the_clients_certificate(certificates: Path) -> None:
    place = certificates
    options = OPEN.replace(
        certificate=str(place / "server.pem"),
        private_key=str(place / "server.key"),
        client_ca=str(place / "ca.pem"),
    )
    shown = {
        "SPRAT_CA_FILE": str(place / "ca.pem"),
        "SPRAT_CLIENT_CERTIFICATE": str(place / "client.pem"),
        "SPRAT_CLIENT_KEY": str(place / "client.key"),
    }
    with serving(Store(MemoryBackend()), options) as served:
        known = with_tls(place, served.url, **shown)
        assert known.pools() == []
        known.close()
        with pytest.raises(StoreUnavailable):
            with_tls(place, served.url, SPRAT_CA_FILE=str(place / "ca.pem")).pools()


def test_a_tenants_store_is_a_store(house: House) -> None:
    key = keys.create(house.store.backend, ("admin",), tenant="acme")[1]
    pool = opened(house.served.url, key).pool("papers")
    pool.configure(max_workers=2)
    pool.push(1)
    assert (pool.state().settings.max_workers, pool.size()) == (2, 1)
    assert house.store.pools() == ["acme.papers"]
    assert house.store.get(pool.items()[0].id).tenant == "acme"


def test_an_address_without_a_store_scheme_names_http(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="http"):
        open_store("gopher://x")
    assert OPTIONS.auth, "keys are on unless somebody switches them off"


def test_claim_whose_answer_never_came_is_handed_back_before_the_next(tmp_path: Path) -> None:
    """The server was away for longer than a call is patient: it may hold an item for the worker."""
    world = HttpWorld(tmp_path)
    try:
        store = world.open()
        pool = store.pool("papers")
        item_id = pool.push(1)
        me = store.workers.register(model.WorkerRegistration(worker_id="w1", pool_id="papers"))
        backend: Any = store.backend
        connections = backend._connections
        call = connections.call

        def lose(*args: Any, **kwargs: Any) -> Any:
            call(*args, **kwargs)
            raise StoreUnavailable("the answer is lost, and no other came in time")

        connections.call = lose
        with pytest.raises(StoreUnavailable):
            pool.claim(me)
        connections.call = call
        claimed = pool.claim(me)
        assert claimed is not None
        assert (claimed.id, claimed.attempts, claimed.epoch) == (item_id, 1, 2)
    finally:
        world.close()
