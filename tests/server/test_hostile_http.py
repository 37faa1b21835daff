"""Requests that two programs could read in two ways, odd keys, methods and encodings: refused."""

from __future__ import annotations

import gzip
import socket
from pathlib import Path

import pytest
from houses import Client, House

from sprat.server import keys
from sprat.store.open_store import open_store

JOBS = "/api/v1/pools/papers/jobs"
POOLS = "/api/v1/pools"
JOB = b'{"data":1}'
SMUGGLED = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"


def raw(house: House, head: bytes, rest: bytes = b"") -> bytes:
    """The whole answer to these bytes, until the server closes."""
    key = house.keys["pusher", "acme"].encode()
    sent = head.replace(b"KEY", b"authorization: Bearer " + key)
    with socket.create_connection(("127.0.0.1", house.served.port), 30) as connection:
        connection.sendall(sent + rest)
        got = b""
        while part := connection.recv(65536):
            got += part
        return got


HEAD = f"POST {JOBS} HTTP/1.1\r\nhost: x\r\nKEY\r\ncontent-type: application/json\r\n".encode()
TWO_WAYS = {
    "a length and chunks": b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
    "two lengths": b"content-length: 10\r\ncontent-length: 12\r\n\r\n" + JOB,
    "a negative length": b"content-length: -1\r\n\r\n",
    "a length with a sign": b"content-length: +10\r\n\r\n" + JOB,
    "a chunk in another notation": b"transfer-encoding: chunked\r\n\r\n0xA\r\n" + JOB,
    "an unknown transfer": b"transfer-encoding: xchunked\r\n\r\n0\r\n\r\n",
    "a space before the colon": b"transfer-encoding : chunked\r\n\r\n0\r\n\r\n",
    "a carriage return alone": b"x: y\rz: 1\r\ncontent-length: 10\r\n\r\n" + JOB,
    "a zero byte": b"x: a\0b\r\ncontent-length: 10\r\n\r\n" + JOB,
}


@pytest.mark.parametrize("name", TWO_WAYS)
def test_a_request_with_two_meanings_is_refused_and_ends_the_connection(
    house: House, name: str
) -> None:
    answer = raw(house, HEAD + TWO_WAYS[name], SMUGGLED)
    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1 ") == 1, "what follows is not read as a request"
    assert house.store.pools() == []


def test_of_two_keys_none_is_better_than_the_last(house: House) -> None:
    head = b"GET /api/v1/pools HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    assert raw(house, head + b"KEY\r\nauthorization: Bearer no\r\n\r\n").startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "TRACE", "CONNECT"])
@pytest.mark.parametrize("path", [POOLS, "/metrics", "/api/v1/audit"])
def test_no_other_method_gets_past_the_key(house: House, method: str, path: str) -> None:
    answer = raw(
        house, f"{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode()
    )
    assert answer.split()[1] in (b"400", b"401", b"404", b"405")


def test_a_key_is_good_in_one_form_only(house: House) -> None:
    good = house.keys["viewer", "acme"]
    _, key_id, secret = good.split("_", 2)
    odd = [
        f"sprat_{key_id.upper()}_{secret}",
        f"sprat_{key_id}_{secret}=",
        f"sprat_{key_id}_{secret[:-1]}",
        f"sprat_{key_id}_",
        f"sprat_{key_id}",
        f"SPRAT_{key_id}_{secret}",
        f" {good}",
    ]
    port = house.served.port
    assert [Client(port, key)("GET", POOLS).status for key in odd] == [401] * len(odd)
    ask = Client(port)
    assert ask("GET", f"{POOLS}?key={good}&access_token={good}").status == 401
    assert ask("GET", POOLS, headers={"Authorization": f"Basic {good}"}).status == 401
    assert ask("GET", POOLS, headers={"Authorization": f"bearer {good}"}).status == 200


def test_a_store_does_not_contain_the_secrets_of_keys(tmp_path: Path) -> None:
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        secret = keys.create(store.backend, ("viewer",))[1].split("_", 2)[2]
        kept = b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert secret.encode() not in kept


def test_what_is_packed_twice_or_endless_is_refused(house: House) -> None:
    pusher = house.client("pusher", "acme")
    bomb = gzip.compress(b"0" * (64 << 20))
    stream = {"Content-Encoding": "gzip", "Content-Type": "application/x-ndjson"}
    assert pusher("POST", f"{JOBS}/stream", bomb, stream).status == 413
    assert pusher("POST", JOBS, bomb, {"Content-Encoding": "gzip"}).status == 413
    twice = gzip.compress(gzip.compress(JOB))
    assert pusher("POST", JOBS, twice, {"Content-Encoding": "gzip"}).status == 422
    for encoding in ("gzip, gzip", "deflate", "br"):
        reply = pusher("POST", JOBS, twice, {"Content-Encoding": encoding})
        assert reply.status == 415
    assert house.store.pools() == []
