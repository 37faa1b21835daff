"""What sprat shows to a Redis server before it is let in: passwords and certificates."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from patience import eventually
from servers.redis import RedisServer, free_port, program

from sprat.core.errors import InvalidInput, StoreUnavailable
from sprat.store.open_store import open_store
from sprat.store.redis.address import parse
from sprat.store.redis.resp import RespConnection

SECRET = "s3cr3t@/:"


@contextmanager
def serving(*settings: str, tls: bool = False) -> Iterator[RedisServer]:
    server = RedisServer(*settings, tls=tls)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that signed itself, and is the server's, the client's and the authority's at once; its
    key is beside it."""
    place = tmp_path_factory.mktemp("tls")
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-keyout", str(place / "key.pem"), "-out", str(place / "cert.pem")),
        *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return place / "cert.pem"


@pytest.fixture(scope="module")
def strict(certificate: Path) -> Iterator[str]:
    """The URL of a server that wants to see a certificate of each client."""
    key = str(certificate.with_name("key.pem"))
    settings = (
        *("--tls-cert-file", str(certificate), "--tls-key-file", key),
        *("--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "yes"),
    )
    with serving(*settings, tls=True) as server:
        yield f"rediss://localhost:{server.port}/0?ca={certificate}"


def test_server_that_asks_for_a_certificate_is_shown_one(
    strict: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_CLIENT_CERTIFICATE", str(certificate))
    monkeypatch.setenv("SPRAT_CLIENT_KEY", str(certificate.with_name("key.pem")))
    with open_store(strict) as store:
        assert store.pool("papers").push("one")
        assert not store.pool("other").wait(seconds=0.01)


def test_server_that_asks_for_a_certificate_refuses_a_client_without_one(strict: str) -> None:
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        open_store(strict)


def test_certificate_that_cannot_be_read_is_named(
    strict: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_CLIENT_CERTIFICATE", str(tmp_path / "absent.pem"))
    with pytest.raises(StoreUnavailable, match=r"SPRAT_CLIENT_CERTIFICATE .*No such file"):
        open_store(strict)


def test_password_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving("--requirepass", SECRET) as server:
        with pytest.raises(StoreUnavailable, match="set SPRAT_REDIS_PASSWORD"):
            open_store(server.url)
        monkeypatch.setenv("SPRAT_REDIS_PASSWORD", SECRET)
        with open_store(server.url) as store:
            assert store.pool("papers").push("one")
        with pytest.raises(StoreUnavailable, match="refuses"):
            open_store(server.url.replace("127", ":of-the-url@127"))


def test_password_of_a_named_user_comes_from_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SPRAT_REDIS_PASSWORD", SECRET)
    with serving() as server:
        server.ask("ACL", "SETUSER", "worker", "on", f">{SECRET}", "+@all", "~*", "&*")
        server.ask("ACL", "SETUSER", "default", "off")
        with open_store(server.url.replace("127", "worker@127")) as store:
            assert store.pool("papers").push("one")


def test_sentinel_may_ask_for_a_user(tmp_path: Path) -> None:
    with serving() as server, sentinel(tmp_path, server.port) as port:
        url = f"redis+sentinel://127.0.0.1:{port}/fleet/0"
        with open_store(f"{url}?sentinel_user=watcher&sentinel_password=pw") as store:
            assert store.pool("papers").push("one")
        with pytest.raises(StoreUnavailable, match="no sentinel knows"):
            open_store(f"{url}?sentinel_password=pw")


@contextmanager
def sentinel(place: Path, master: int) -> Iterator[int]:
    port = free_port()
    settings = place / "sentinel.conf"
    settings.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {place}\n"
        f"user default off\nuser watcher on >pw allcommands allchannels allkeys\n"
        f"sentinel monitor fleet 127.0.0.1 {master} 1\n"
    )
    process = subprocess.Popen([program(), str(settings), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        eventually(lambda: answers(f"redis://127.0.0.1:{port}"))
        yield port
    finally:
        process.kill()
        process.wait()


def answers(url: str) -> bool:
    address = parse(url)
    try:
        RespConnection(address, address.hosts[0]).close()
    except OSError:
        return False
    return True


# -- the caller's own way in ---------------------------------------------------------------------


def tunnel(to: int, log: list[tuple[str, int]]) -> Callable[[str, int], socket.socket]:
    def connect(host: str, port: int) -> socket.socket:
        log.append((host, port))
        return socket.create_connection(("127.0.0.1", to))

    return connect


def test_connection_is_made_by_the_callers_function() -> None:
    asked: list[tuple[str, int]] = []
    with serving() as server:
        url = "redis://far.invalid:7000/0"
        with open_store(url, connect=tunnel(server.port, asked)) as store:
            assert store.pool("papers").push("one")
            assert not store.pool("other").wait(seconds=0.01)
    assert set(asked) == {("far.invalid", 7000)}


def test_tls_is_spoken_over_the_callers_connection(
    strict: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPRAT_CLIENT_CERTIFICATE", str(certificate))
    monkeypatch.setenv("SPRAT_CLIENT_KEY", str(certificate.with_name("key.pem")))
    port = parse(strict).hosts[0][1]
    with open_store(strict.replace(str(port), "1"), connect=tunnel(port, [])) as store:
        assert store.pool("papers").push("one")


def test_function_that_cannot_connect_is_an_outage() -> None:
    def connect(host: str, port: int) -> socket.socket:
        raise ConnectionRefusedError("the tunnel is down")

    with pytest.raises(StoreUnavailable, match="the tunnel is down"):
        open_store("redis://far.invalid", connect=connect)


@pytest.mark.parametrize(
    ("url", "given", "says"),
    [
        ("sqlite:///x.db", {"connect": print}, "connect= and password= are for Redis"),
        ("memory://", {"password": "x"}, "connect= and password= are for Redis"),
        ("redis+unix:///x.sock", {"connect": print}, r"no use with redis\+unix"),
        ("redis://h", {"connect": lambda *_: 7}, "must return a connected socket, not int"),
    ],
)
def test_wrong_function_is_named(url: str, given: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        open_store(url, **given)


def test_password_that_changes_is_asked_for_at_each_connection() -> None:
    words = ["first"]
    with serving("--requirepass", "first") as server:
        with open_store(server.url, password=lambda: words[-1]) as store:
            store.pool("papers").push("one")
            change_password(server, "first", "second")
            words.append("second")
            assert store.pool("papers").push("two")
        with pytest.raises(InvalidInput, match="password= returned int, not a string"):
            open_store(server.url, password=lambda: 7)  # type: ignore[arg-type, return-value]
        with open_store(server.url, password="second") as store:
            assert store.pool("papers").counts().pending == 2


def test_password_file_is_read_at_each_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "password"
    monkeypatch.setenv("SPRAT_REDIS_PASSWORD_FILE", str(file))
    with serving("--requirepass", "first") as server:
        with pytest.raises(StoreUnavailable, match=r"SPRAT_REDIS_PASSWORD_FILE .* No such file"):
            open_store(server.url)
        file.write_text("first\n")
        with open_store(server.url) as store:
            store.pool("papers").push("one")
            change_password(server, "first", "second")
            with pytest.raises(StoreUnavailable, match="refuses the user name or the password"):
                store.pool("papers").push("refused")
            file.write_text("second\n")
            assert store.pool("papers").push("two")


def change_password(server: RedisServer, old: str, new: str) -> None:
    address = parse(server.url.replace("127", f":{old}@127"))
    wire = RespConnection(address, address.hosts[0])
    wire.greet(address)
    wire.ask("CONFIG", "SET", "requirepass", new)
    wire.ask("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    wire.close()


def test_connections_are_named_for_operators() -> None:
    name = f"name=sprat-{os.uname().nodename}-{os.getpid()} "
    with serving() as server, open_store(server.url) as store:
        assert not store.pool("papers").wait(seconds=0.01)
        assert server.ask("CLIENT", "LIST").count(name) == 2, "one asks, one waits for work"


def test_user_that_may_not_name_its_connection_works_all_the_same() -> None:
    with serving() as server:
        server.ask("ACL", "SETUSER", "worker", "on", ">pw", "+@all", "-client", "~*", "&*")
        with open_store(server.url.replace("127", "worker:pw@127")) as store:
            assert store.pool("papers").push("one")
