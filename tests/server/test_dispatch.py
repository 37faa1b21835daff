"""Choosing workers in turn, and handing them operations."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from houses import OPTIONS, Client, House

from sprat.config.probe_settings import Lifecycle
from sprat.core import jsontext
from sprat.server import endpoint_workers, outbound, round_robin
from sprat.server.addresses import Target
from sprat.server.outbound import ask

REGISTER = "/api/v1/workers/register"
SELECT = "/api/v1/workers/select"
DISPATCH = "/api/v1/workers/dispatch"


class Endpoint(BaseHTTPRequestHandler):
    """Four workers on one port: the first part of the path is the worker's name."""

    busy: set[str] = set()
    got: list[tuple[str, object]] = []

    def do_POST(self) -> None:
        name = self.path.split("/")[1]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(503 if name in self.busy else 202)
        self.end_headers()
        if name not in self.busy:
            self.got.append((self.path, body))
            self.wfile.write(b'{"operation_id": "op-1"}')

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def house() -> Iterator[House]:
    Endpoint.busy, Endpoint.got = set(), []
    rules = Lifecycle(probe_hosts=("127.0.0.1",), health_check_interval=3600.0)
    house = House(OPTIONS.replace(lifecycle=rules))
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in "abcd":
            url = f"http://127.0.0.1:{server.server_port}/{name}"
            body = {"worker_id": name, "worker_type": "backtesting", "endpoint_url": url}
            assert house.client("worker")("POST", REGISTER, body).status == 200
        yield house
        server.shutdown()
    house.close()


def test_four_workers_share_a_hundred_turns(house: House) -> None:
    chosen = Counter(round_robin.choose(house.store.backend, "backtesting") for _ in range(100))
    assert chosen == dict.fromkeys("abcd", 25)


def test_four_workers_share_the_turns_of_many_callers(house: House) -> None:
    with ThreadPoolExecutor(8) as threads:
        futures = [
            threads.submit(round_robin.choose, house.store.backend, "backtesting")
            for _ in range(100)
        ]
        assert Counter(future.result() for future in futures) == dict.fromkeys("abcd", 25)


def test_only_available_workers_are_chosen(house: House, pusher: Client) -> None:
    ill = endpoint_workers.Health(failures=3, is_unavailable=True)
    house.store.backend.put(endpoint_workers.HEALTH, "a", jsontext.dumps(ill.as_dict()), None, None)
    seen = {
        pusher("POST", SELECT, {"worker_type": "backtesting"}).body["worker_id"] for _ in "xxxx"
    }
    assert seen == {"b", "c", "d"}
    reply = pusher("POST", SELECT, {"worker_type": "training"})
    assert (reply.status, reply.body["error"]) == (503, "no_worker")
    assert int(reply.headers["retry-after"]) > 0


def test_busy_workers_are_skipped(house: House, pusher: Client) -> None:
    Endpoint.busy = {"a", "b"}
    body = {"worker_type": "backtesting", "path": "/start", "body": {"n": 1}}
    reply = pusher("POST", DISPATCH, body)
    assert reply.body == {"worker_id": "c", "status": 202, "answer": {"operation_id": "op-1"}}
    assert Endpoint.got == [("/c/start", {"n": 1})]


def test_three_are_asked_and_then_the_caller_comes_back(house: House, pusher: Client) -> None:
    Endpoint.busy = set("abcd")
    reply = pusher("POST", DISPATCH, {"worker_type": "backtesting"})
    assert reply.status == 503
    assert "3 were asked" in reply.body["message"]
    assert "push a job" in reply.body["message"]


def test_nobody_is_asked_who_is_not_on_the_list(house: House, pusher: Client) -> None:
    house.served.state.hosts = type(house.served.state.hosts)([])
    reply = pusher("POST", DISPATCH, {"worker_type": "backtesting"})
    assert reply.status == 503
    assert Endpoint.got == []


@pytest.mark.parametrize("path", ["x", "/a b", "/a\r\nhost: x", "/a?b", "/é", "//e#f"])
def test_a_path_is_a_plain_path(house: House, pusher: Client, path: str) -> None:
    body = {"worker_type": "backtesting", "path": path}
    assert pusher("POST", DISPATCH, body).status == 422


def test_a_newline_never_gets_into_a_request(house: House) -> None:
    for path in ("/a\n", "/a\r\nx: y", "/a b"):
        target = Target(address="127.0.0.1", port=1, host="h", is_tls=False, path=path)
        assert asyncio.run(ask(target, seconds=1)) is None
        with pytest.raises(ValueError, match="path"):
            outbound._request(target, None)
