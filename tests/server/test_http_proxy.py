"""A proxy on the way to a server, a server that has moved, and answers of other programs."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from email.utils import formatdate
from pathlib import Path

import pytest
from servers.orchestrator import OPEN, Served, serving

from sprat.core.errors import InvalidInput, SpratError, StoreMismatch, StoreUnavailable
from sprat.server import keys
from sprat.store.http import answer, connection
from sprat.store.http.address import read
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.client import Client, Routes

HOST = "orchestrator.test"  # no name server knows it, only the proxy does
LOGIN = b"proxy-authorization: Basic bWU6cEBzcw=="  # me:p@ss


class ForwardProxy:
    """Passes requests in absolute form and CONNECT tunnels on to one port of this machine."""

    def __init__(self, port: int, *, needs_login: bool = False) -> None:
        self._port = port
        self._needs_login = needs_login
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.heads: list[bytes] = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        head = client.recv(65536)
        self.heads.append(head)
        if self._needs_login and LOGIN not in head:
            client.sendall(b"HTTP/1.1 407 Login\r\ncontent-length: 0\r\n\r\n")
            client.close()
            return
        server = socket.create_connection(("127.0.0.1", self._port))
        if head.startswith(b"CONNECT "):
            client.sendall(b"HTTP/1.1 200 Go on\r\n\r\n")
        else:
            server.sendall(head.replace(f"http://{HOST}:{self._port}".encode(), b"", 1))
        back = threading.Thread(target=_copy, args=(server, client), daemon=True)
        back.start()
        _copy(client, server)
        back.join()
        server.close()
        client.close()

    def close(self) -> None:
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    store = Store(MemoryBackend())
    monkeypatch.setenv("SPRAT_API_KEY", keys.create(store.backend, ("admin", "worker"))[1])
    monkeypatch.setenv("SPRAT_ALLOW_HTTP", "1")
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    with serving(store, OPEN.replace(auth=True)) as served:
        yield served


@contextlib.contextmanager
def forwarding(port: int, *, needs_login: bool = False) -> Iterator[ForwardProxy]:
    proxy = ForwardProxy(port, needs_login=needs_login)
    yield proxy
    proxy.close()


def test_http_goes_through_the_proxy_in_absolute_form(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://{HOST}:{served.port}"
    with forwarding(served.port, needs_login=True) as proxy:
        monkeypatch.setenv("HTTP_PROXY", f"http://me:p%40ss@127.0.0.1:{proxy.port}")
        with open_store(url) as store:
            store.pool("papers").push(1)
            assert store.pool("papers").counts().pending == 1, "over the same connection"
        Client(url, worker_id="w", worker_type="t", endpoint_url="http://127.0.0.1:1").register()
        assert len(proxy.heads) == 2
        assert proxy.heads[0].startswith(f"POST {url}/api/v1/store/".encode())


def test_https_goes_through_a_tunnel_that_the_proxy_cannot_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "server.pem")
    curve = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    about = ("-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-days", "2")
    files = ("-keyout", key, "-out", certificate)
    made = ["openssl", "req", "-x509", *curve, *files, *about]
    subprocess.run(made, check=True, capture_output=True)
    store = Store(MemoryBackend())
    secret = keys.create(store.backend, ("admin",))[1]
    monkeypatch.setenv("SPRAT_API_KEY", secret)
    monkeypatch.setenv("SPRAT_CA_FILE", certificate)
    options = OPEN.replace(auth=True, certificate=certificate, private_key=key)
    with serving(store, options) as served, forwarding(served.port) as proxy:
        monkeypatch.setenv("https_proxy", f"127.0.0.1:{proxy.port}")
        url = f"https://{HOST}:{served.port}"
        with open_store(url) as remote:
            remote.pool("papers").push(1)
        assert proxy.heads == [
            f"CONNECT {HOST}:{served.port} HTTP/1.1\r\nhost: {HOST}:{served.port}\r\n\r\n".encode()
        ]
    assert store.pool("papers").size() == 1


def test_a_proxy_that_wants_a_login_is_named(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    with forwarding(served.port, needs_login=True) as proxy:
        for scheme in ("http", "https"):
            monkeypatch.setenv(f"{scheme}_proxy", f"http://me:wrong@127.0.0.1:{proxy.port}")
            with pytest.raises(
                InvalidInput, match="the proxy asks for a user and a pass"
            ) as caught:
                open_store(f"{scheme}://{HOST}:{served.port}").pools()
            assert f"proxy 127.0.0.1:{proxy.port}" in str(caught.value)
            assert "wrong" not in str(caught.value)


@pytest.mark.parametrize(
    ("host", "exempt", "is_direct"),
    [
        ("a.example.com", "", False),
        ("a.example.com", "*", True),
        ("a.example.com", "other, .example.com", True),
        ("a.example.com", "example.com", True),
        ("example.com", ".example.com", True),
        ("a.example.com", "*.example.com", True),
        ("badexample.com", "example.com", False),
        ("a.example.com", "a.example.com:443", True),
        ("a.example.com", "a.example.com:80", False),
        ("10.1.2.3", "10.0.0.0/8", True),
        ("11.1.2.3", "10.0.0.0/8", False),
        ("[2001:db8::1]", "2001:db8::1", True),
        ("127.0.0.1", "", True),
        ("localhost", "", True),
    ],
)
def test_no_proxy_names_hosts_domains_and_networks(host: str, exempt: str, is_direct: bool) -> None:
    environment = {"HTTPS_PROXY": "http://proxy:3128", "NO_PROXY": exempt}
    assert (read(f"https://{host}", environment).proxy is None) == is_direct


def test_a_kind_of_proxy_that_is_not_supported_is_refused() -> None:
    with pytest.raises(InvalidInput, match="HTTPS_PROXY must be http://host:port") as caught:
        read("https://far", {"HTTPS_PROXY": "socks5://me:secret@proxy:1080"})
    assert "secret" not in str(caught.value)


# -- answers of other programs ------------------------------------------------------------------


@contextlib.contextmanager
def answering(*answers: bytes) -> Iterator[str]:
    """The address of a server with these answers, one per connection; the last one for the rest."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            left = list(answers)
            with contextlib.suppress(OSError):
                while True:
                    connection, _ = listening.accept()
                    connection.recv(65536)
                    connection.sendall(left.pop(0) if len(left) > 1 else left[0])
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        listening.shutdown(socket.SHUT_RDWR)


def reply(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", f"content-length: {len(body)}", *headers, "", ""]
    return "\r\n".join(lines).encode() + body


CHUNKED = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    ("text", "kind", "sentence"),
    [
        (CHUNKED + b"zz\r\n", StoreUnavailable, "a chunk of the answer has no size"),
        (CHUNKED + b"-5\r\nabcdefgh\r\n0\r\n\r\n", StoreUnavailable, "has no size"),
        (CHUNKED + b"\r\n", StoreUnavailable, "has no size"),
        (CHUNKED + b"1_0\r\n", StoreUnavailable, "has no size"),
        (b"HTTP/1.1 99 X\r\n\r\n", StoreUnavailable, "not HTTP"),
        (reply(b"1"), StoreMismatch, "is no orchestrator: it answers with status 200"),
        (reply(b"null"), StoreMismatch, "is no orchestrator"),
        (reply(b"[" * 200_000), StoreMismatch, "is no orchestrator"),
        (reply(b"\xff"), StoreMismatch, "is no orchestrator"),
        (reply(b'{"error": [], "message": 1}', "422 X", "sprat-protocol: 2"), InvalidInput, "1"),
        (reply(b"null", "403 X"), StoreMismatch, "is no orchestrator: it answers with status 403"),
        (
            reply(b"", "308 Moved", "location: https://new.example/api/v1/store/pools"),
            StoreMismatch,
            "sends clients to another address: use https://new.example if that is right",
        ),
    ],
)
def test_any_answer_becomes_one_sentence(
    text: bytes, kind: type[SpratError], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAUSES", (0.0, 0.01))
    with answering(text) as url:
        with pytest.raises(kind, match=sentence):
            open_store(url).pools()
        with pytest.raises(SpratError):
            Routes(url).call("GET", "/api/v1/pools")


def test_retry_after_may_be_a_date() -> None:
    now = 1_800_000_000.0
    date = {"date": formatdate(now, usegmt=True)}
    assert answer.retry_after({"retry-after": "7"}) == 7.0
    assert answer.retry_after({"retry-after": formatdate(now + 3, usegmt=True), **date}) == 3.0
    assert answer.retry_after({"retry-after": formatdate(now - 3, usegmt=True), **date}) == 0.0
    soon = answer.retry_after({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert 50 < soon < 61
    assert answer.retry_after({"retry-after": "soon"}) == 0.5
    assert answer.retry_after({}) == 0.5


def test_a_request_that_is_refused_for_now_is_sent_again() -> None:
    date = formatdate(1_800_000_000, usegmt=True)
    busy = reply(b'{"message": "busy"}', "503 X", f"date: {date}", f"retry-after: {date}")
    with answering(busy, reply(b'{"answer": ["papers"]}')) as url:
        assert open_store(url).pools() == ["papers"]
    with answering(busy, reply(b"{}")) as url, pytest.raises(StoreUnavailable, match="busy"):
        Routes(url).call("POST", "/api/v1/pools/papers/jobs", {})
