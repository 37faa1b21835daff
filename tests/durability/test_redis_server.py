"""What a Redis server can do to us: go away, refuse, forget, fail over; and what we say then."""

from __future__ import annotations

import os
import select
import socket
import socketserver
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from patience import PATIENCE
from servers.redis import RedisServer, free_port, program

from sprat.cli import main
from sprat.core.errors import (
    InvalidInput,
    StoreError,
    StoreMismatch,
    StoreUnavailable,
    StoreWarning,
)
from sprat.core.model import WorkerRegistration
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.open_store import open_store
from sprat.store.redis import client, diagnostics
from sprat.store.redis.client import RedisClient
from sprat.store.redis.resp import RespConnection, refuse_itself
from sprat.store.store import Store

SECRET = "s3cr3t@/:"
QUOTED = "s3cr3t%40%2F%3A"


@contextmanager
def serving(*settings: str, tls: bool = False) -> Iterator[RedisServer]:
    server = RedisServer(*settings, tls=tls)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def server() -> Iterator[RedisServer]:
    with serving() as server:
        yield server


@pytest.fixture
def synced() -> Iterator[RedisServer]:
    """One that forgets nothing when it is killed: with everysec it may hold a write back while its
    disk is busy."""
    with serving("--appendfsync", "always") as server:
        assert server.ask("CONFIG", "GET", "appendfsync")[1] == "always"
        yield server


def enrol(store: Store) -> None:
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=1000.0))


def work_off(store: Store) -> int:
    """Claims and completes all that is there."""
    pool, n = store.pool("papers"), 0
    while item := pool.claim("w1"):
        assert pool.complete(item)
        n += 1
    return n


# -- going away and coming back ------------------------------------------------------------------


def test_store_goes_on_after_a_restart_of_the_server(synced: RedisServer) -> None:
    with open_store(synced.url) as store:
        enrol(store)
        ids = store.pool("papers").push_many(range(10))
        synced.kill()
        synced.start()
        assert [store.get(item_id).data for item_id in ids] == list(range(10))
        assert work_off(store) == 10


def test_verb_waits_for_a_server_that_comes_back(synced: RedisServer) -> None:
    with open_store(synced.url) as store:
        store.pool("papers").push("one")
        synced.kill()
        comes_back = threading.Timer(0.3, synced.start)
        comes_back.start()
        store.pool("papers").push("two")
        comes_back.join()
        assert store.pool("papers").size() == 2


def test_server_that_stays_away_is_unavailable(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sprat.store.redis.client.PATIENCE_SECONDS", 0.2)
    with open_store(server.url) as store:
        server.kill()
        with pytest.raises(StoreUnavailable, match="cannot be reached"):
            store.pool("papers").push("one")


def test_waiter_survives_a_restart(synced: RedisServer) -> None:
    with open_store(synced.url) as store, open_store(synced.url) as other:
        enrol(store)
        woken: list[bool] = []
        waiter = threading.Thread(
            target=lambda: woken.append(store.pool("papers").wait("w1", seconds=30.0))
        )
        waiter.start()
        synced.kill()
        synced.start()
        other.pool("papers").push("work")
        waiter.join(30)
        assert woken == [True]


class CutReplies:
    """Cuts the connection once after a command was carried out, and before its reply is read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n: int = 1) -> None:
        self.left = n
        read = RespConnection.read

        def cut(wire: RespConnection) -> object:
            answer = read(wire)
            if self.left:
                self.left -= 1
                wire.close()
                raise ConnectionResetError("cut by the test")
            return answer

        monkeypatch.setattr(RespConnection, "read", cut)


def test_claim_whose_reply_was_lost_strands_nothing(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(server.url) as store:
        enrol(store)
        pool = store.pool("papers")
        pool.push_many(range(5))
        CutReplies(monkeypatch)
        items = pool.claim_many("w1", 3)
        assert [item.data for item in items] == [0, 1, 2]
        assert pool.counts().claimed == 3
        CutReplies(monkeypatch)
        answer = pool.exchange("w1", settlements=[pool.completion(i) for i in items], claim=5)
        assert answer.settled == (True, True, True)
        assert [item.data for item in answer.items] == [3, 4]
        assert (pool.counts().done, pool.counts().claimed) == (3, 2)


def test_other_verbs_whose_reply_was_lost_happen_once(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(server.url) as store:
        pool = store.pool("papers")
        CutReplies(monkeypatch)
        pool.push("one")
        assert pool.size() == 1
        CutReplies(monkeypatch)
        assert pool.configure(max_workers=3, if_version=0)
        CutReplies(monkeypatch)
        assert store.backend.request_check("papers", 3)
        CutReplies(monkeypatch)
        assert store.backend.put("kind", "name", "{}", 0, None)
        CutReplies(monkeypatch)
        assert store.backend.take("bucket", 1.0, 0.001, 1.0) == 0.0


# -- refusing ------------------------------------------------------------------------------------


def test_nobody_there_is_told_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(StoreUnavailable, match=r"cannot be reached .*is it running"):
        open_store(f"redis://127.0.0.1:{free_port()}/0")
    assert time.monotonic() - began < 3.0


def test_connection_to_itself_is_no_server() -> None:
    """On a port of the range from which the kernel takes ours, it comes to that now and then."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", 0))
        where = taken.getsockname()
        taken.connect(where)
        assert taken.getpeername() == where
        with pytest.raises(ConnectionRefusedError):
            refuse_itself(taken)


def test_password_is_sent_and_never_shown() -> None:
    with serving("--requirepass", SECRET) as server:
        place = f"127.0.0.1:{server.port}/0"
        with open_store(f"redis://:{QUOTED}@{place}") as store:
            assert store.pool("papers").push("one")
            assert SECRET not in str(store.describe())
        for url, what in (
            (f"redis://{place}", "password"),
            (f"redis://:wrong-one@{place}", "refuses"),
        ):
            with pytest.raises(StoreUnavailable, match=what) as caught:
                open_store(url)
            assert "wrong-one" not in str(caught.value)


def test_replica_is_refused_with_a_sentence(
    server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "PATIENCE_SECONDS", 0.5)  # for the replica to become the master
    server.ask("CONFIG", "SET", "repl-diskless-sync-delay", "0")
    with serving("--replicaof", "127.0.0.1", str(server.port)) as replica:
        link_up = "master_link_status:up"
        while link_up not in replica.ask("INFO", "replication"):
            time.sleep(0.01)
        store = open_store(replica.url)
        with pytest.raises(StoreUnavailable, match="is a replica and cannot be written"):
            store.pool("papers").push("one")
        store.close()


def test_server_out_of_memory_changes_nothing(server: RedisServer) -> None:
    with open_store(server.url) as store:
        pool = store.pool("papers")
        pool.push("one")
        server.ask("CONFIG", "SET", "maxmemory", "1mb")
        with pytest.raises(StoreUnavailable, match="no memory left"):
            pool.push("two")
        server.ask("CONFIG", "SET", "maxmemory", "0")
        assert [item.data for item in pool.items()] == ["one"]
        assert pool.counts().pending == 1


def test_old_server_is_refused() -> None:
    told = pytest.raises(StoreMismatch, match=r"is Redis 6\.0\.16: sprat needs 6\.2")
    with answering_to_info("redis_version:6.0.16\r\n") as url, told:
        open_store(url)


@pytest.mark.parametrize(("number", "advice"), [(99, "upgrade sprat"), (0, "with ?store=")])
def test_store_of_another_format_is_refused(server: RedisServer, number: int, advice: str) -> None:
    with open_store(server.url) as store:
        store.pool("papers").push("one")
    server.ask("SET", "{sprat}:format", number)
    with pytest.raises(StoreMismatch) as caught:
        open_store(server.url)
    assert f"format {number} and this sprat knows {diagnostics.FORMAT}" in str(caught.value)
    assert str(caught.value).endswith(advice)
    assert server.ask("GET", "{sprat}:format") == str(number)
    server.ask("SET", "{sprat}:format", diagnostics.FORMAT)
    with open_store(server.url) as store:
        assert store.pool("papers").size() == 1


def test_store_whose_keys_were_deleted_gets_its_format_again(server: RedisServer) -> None:
    with open_store(server.url) as store:
        server.ask("FLUSHALL")
        store.pool("papers").push("one")
        with open_store(server.url) as another:
            assert another.pool("papers").size() == 1
    assert server.ask("GET", "{sprat}:format") == str(diagnostics.FORMAT)


@contextmanager
def answering_to_info(text: str) -> Iterator[str]:
    """A stand-in for servers that are not here to be started: it says what it is, and no more."""

    class Answer(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            while count := self.rfile.readline():
                words = [self.rfile.readline() for _ in range(2 * int(count[1:]))]
                is_info = words[1].strip() == b"INFO"
                answer = f"${len(text)}\r\n{text}\r\n" if is_info else "+OK\r\n"
                self.wfile.write(answer.encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"redis://127.0.0.1:{server.server_address[1]}/0"
        server.shutdown()


def test_missing_parser_names_the_extra() -> None:
    program = (
        "import sys; sys.modules['hiredis'] = None\n"
        "import sprat\n"
        "try: sprat.open_store('redis://127.0.0.1')\n"
        "except sprat.SpratError as error: print(type(error).__name__, error)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, check=True
    )
    assert told.stdout == "MissingExtra hiredis is not installed: pip install 'sprat[redis]'\n"


@pytest.mark.parametrize(
    "url",
    [
        "redis://host:port",
        "redis://host/name",
        "redis://host?shop=x",
        "redis://host?store={x}",
        "redis://host?ca=/tmp/ca.pem",
        "redis+sentinel://host",
        "redis+http://host",
        "redis://:%zz@host",
    ],
)
def test_url_that_makes_no_sense_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput):
        open_store(url)


# -- forgetting ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("appendonly", "no", "append-only file is off"),
        ("maxmemory-policy", "allkeys-lru", "maxmemory-policy is allkeys-lru"),
    ],
)
def test_server_that_forgets_is_told_of(
    server: RedisServer, capsys: pytest.CaptureFixture[str], name: str, value: str, told: str
) -> None:
    assert main.main(["doctor", "--url", server.url]) == 0
    capsys.readouterr()
    server.ask("CONFIG", "SET", name, value)
    with pytest.warns(StoreWarning, match=told):
        open_store(server.url).close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StoreWarning)
        assert main.main(["doctor", "--url", server.url]) == 1
    assert told in capsys.readouterr().out


def test_a_command_warns_of_a_server_that_forgets_in_one_sentence(
    server: RedisServer, tmp_path: Path
) -> None:
    """Also `sprat apply`, which opens the store several times."""
    server.ask("CONFIG", "SET", "appendonly", "no")
    (tmp_path / "sprat.yml").write_text("pools: {numbers: {command: [cat]}}\n")
    done = subprocess.run(
        [sys.executable, "-m", "sprat", "apply", "--url", server.url],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    (sentence,) = done.stderr.splitlines()
    assert sentence.startswith("sprat: warning: ")
    assert "append-only file is off" in sentence


def test_a_server_that_still_reads_its_append_only_file_is_not_told_of() -> None:
    """Until it is done it reports the file as off."""
    assert diagnostics.dangers({"aof_enabled": "0", "loading": "1"}) == []
    assert diagnostics.dangers({"aof_enabled": "0", "loading": "0"}) != []


def test_the_server_is_named_with_its_own_version(server: RedisServer) -> None:
    told = subprocess.run([program(), "--version"], capture_output=True, text=True, check=True)
    name, version = told.stdout.split()[0].lower(), told.stdout.split("v=")[1].split()[0]
    with open_store(server.url) as store:
        assert store.describe()["server"] == f"{name} {version}"


def test_a_valkey_has_two_versions_and_is_called_by_its_own() -> None:
    known = {"redis_version": "7.2.4", "server_name": "valkey", "valkey_version": "8.0.1"}
    assert diagnostics.server_of(known) == "valkey 8.0.1"
    assert diagnostics.server_of({"redis_version": "7.0.15"}) == "redis 7.0.15"
    assert diagnostics.server_of({}) == "redis unknown"


def test_what_may_not_be_asked_is_unknown(server: RedisServer) -> None:
    rights = ("+@all", "-@dangerous", "~{sprat}*", "&{sprat}*")
    server.ask("ACL", "SETUSER", "worker", "on", ">pw", *rights)
    with open_store(server.url.replace("127.0.0.1", "worker:pw@127.0.0.1")) as store:
        enrol(store)
        store.pool("papers").push("one")
        assert work_off(store) == 1
        assert not store.pool("papers").wait("w1", seconds=0.05)
        about = store.describe()
        assert (about["aof"], about["fsync"], about["eviction"]) == ("unknown",) * 3


# -- other ways to run it ------------------------------------------------------------------------


def test_tls_server_is_trusted_by_its_certificate_only(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = [
        *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
        *("-keyout", str(key), "-out", str(certificate), "-subj", "/CN=localhost"),
        *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    settings = (
        *("--tls-cert-file", str(certificate), "--tls-key-file", str(key)),
        *("--tls-ca-cert-file", str(certificate), "--tls-auth-clients", "no"),
    )
    with serving(*settings, tls=True) as server:
        url = f"rediss://localhost:{server.port}/0"
        with open_store(f"{url}?ca={certificate}") as store:
            enrol(store)
            store.pool("papers").push("one")
            assert not store.pool("other").wait("w1", seconds=0.05)
            assert work_off(store) == 1
            ring_the_cancel_bell(store)
        with pytest.raises(StoreUnavailable, match=r"(?i)certificate"):
            open_store(url)


def ring_the_cancel_bell(store: Store) -> None:
    pool = store.pool("papers")
    pool.push("two")
    item = pool.claim("w1")
    assert item is not None
    claims = [ClaimRef(item_id=item.id, token=item.token)]
    bell = store.backend.cancel_bell(WorkerRef(worker_id="w1"))
    assert bell is not None
    assert store.backend.lost(claims) == ()
    assert pool.cancel(item.id)
    assert select.select([bell], [], [], PATIENCE)[0]
    assert store.backend.lost(claims) == (item.id,)
    assert not select.select([bell], [], [], 0)[0]


def test_unix_socket_is_a_way_too(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with serving("--unixsocket", path), open_store(f"redis+unix://{path}") as store:
        enrol(store)
        store.pool("papers").push("one")
        assert work_off(store) == 1


def test_sentinel_names_the_master_before_and_after_a_failover(
    server: RedisServer, tmp_path: Path
) -> None:
    with (
        serving("--replicaof", "127.0.0.1", str(server.port)) as replica,
        sentinel(tmp_path, server.port) as port,
        open_store(f"redis+sentinel://127.0.0.1:{port}/fleet/0") as store,
    ):
        enrol(store)
        store.pool("papers").push("one")
        assert server.ask("WAIT", 1, 25_000) == 1  # a first sync begins after five seconds
        server.kill()
        end = time.monotonic() + 60
        while "role:master" not in replica.ask("INFO", "replication"):
            assert time.monotonic() < end, "no failover"
            time.sleep(0.05)
        patiently(lambda: store.pool("papers").push("two"))
        assert work_off(store) == 2


def patiently(verb: object, within: float = 30.0) -> None:
    """As a worker does: again while the store is unavailable."""
    end = time.monotonic() + within
    while True:
        try:
            verb()  # type: ignore[operator]
        except StoreError:
            assert time.monotonic() < end
        else:
            return


@contextmanager
def sentinel(place: Path, master: int) -> Iterator[int]:
    port = free_port()
    settings = place / "sentinel.conf"
    settings.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {place}\n"
        f"sentinel monitor fleet 127.0.0.1 {master} 1\n"
        f"sentinel down-after-milliseconds fleet 500\nsentinel failover-timeout fleet 2000\n"
    )
    process = subprocess.Popen([program(), str(settings), "--sentinel"], stdout=subprocess.DEVNULL)
    try:
        address = f"redis://127.0.0.1:{port}"
        wait_for_replica(address)
        yield port
    finally:
        process.kill()
        process.wait()


def wait_for_replica(url: str) -> None:
    from sprat.store.redis.address import parse

    address = parse(url)
    end = time.monotonic() + 60
    while True:
        try:
            wire = RespConnection(address, address.hosts[0])
            found = wire.ask("SENTINEL", "REPLICAS", "fleet")
            wire.close()
            if found:
                return
        except OSError:
            pass
        assert time.monotonic() < end, "the sentinel does not see the replica"
        time.sleep(0.05)


def test_cluster_is_followed_to_the_node_of_the_store() -> None:
    ports = [free_port(), free_port()]
    settings = [("--cluster-enabled", "yes", "--cluster-port", str(port)) for port in ports]
    with serving(*settings[0]) as one, serving(*settings[1]) as two:
        one.ask("CLUSTER", "ADDSLOTSRANGE", 0, 8191)
        two.ask("CLUSTER", "ADDSLOTSRANGE", 8192, 16383)
        one.ask("CLUSTER", "MEET", "127.0.0.1", two.port, ports[1])
        end = time.monotonic() + 60
        for node in (one, two):
            while "cluster_state:ok" not in node.ask("CLUSTER", "INFO"):
                assert time.monotonic() < end, "the cluster does not come up"
                time.sleep(0.05)
        for node in (one, two):
            with open_store(f"{node.url}?store=followed") as store:
                enrol(store)
                pool = store.pool("papers")
                pool.push_many(range(3), tenant="a", group=None)
                assert not store.pool("other").wait("w1", seconds=0.05)
                assert work_off(store) == 3
                assert pool.observe().counts.done
        keys = [node.ask("DBSIZE") for node in (one, two)]
        assert min(keys) == 0
        assert max(keys) > 0


def test_connection_never_crosses_a_fork(server: RedisServer) -> None:
    with open_store(server.url) as store:
        pool = store.pool("papers")
        pool.push("before")
        child = os.fork()
        if not child:
            try:
                for n in range(200):
                    pool.push(n)
            finally:
                os._exit(0)
        for n in range(200):
            pool.push(n)
        os.waitpid(child, 0)
        assert pool.size() == 401


def test_closed_store_says_so(server: RedisServer) -> None:
    store = open_store(server.url)
    store.close()
    with pytest.raises(StoreUnavailable, match="was closed"):
        store.pool("papers").push("one")
    assert isinstance(store.backend._client, RedisClient)  # type: ignore[attr-defined]
