"""The health monitor and the reaper go on, whatever endpoints and documents they meet."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from houses import OPTIONS, House

from sprat.config.probe_settings import Lifecycle
from sprat.core import model
from sprat.server import endpoint_workers, outbound
from sprat.server.addresses import Target
from sprat.server.tenancy import TenantBackend

REGISTER = "/api/v1/workers/register"
RULES = Lifecycle(
    health_check_interval=0.02, health_check_timeout=5.0, probe_hosts=("127.0.0.1", "localhost")
)
UNREADABLE = ["http://[x", "http://..x", f"http://{'a' * 64}", "http://host:70000"]


class Healthy(BaseHTTPRequestHandler):
    """A worker that is well, and counts how often it is asked."""

    asked: list[str] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"worker_status": "idle"}')

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def endpoint() -> Iterator[str]:
    Healthy.asked.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Healthy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def house() -> Iterator[House]:
    house = House(OPTIONS.replace(lifecycle=RULES, reap_seconds=0.02))
    yield house
    house.close()


def about(worker_id: str, url: str) -> dict[str, Any]:
    return {"worker_id": worker_id, "worker_type": "t", "endpoint_url": url}


def until(house: House, condition: Callable[[], bool]) -> None:
    """Let the store's clock run until the condition holds."""
    pause = threading.Event()
    for _ in range(1500):
        if condition():
            return
        house.now += 0.05
        pause.wait(0.02)
    raise AssertionError("it does not happen")


def probed_again(house: House, path: str = "/op/health") -> None:
    """Two more probes: the second belongs to a pass that began after this call."""
    wanted = Healthy.asked.count(path) + 2
    until(house, lambda: Healthy.asked.count(path) >= wanted)


@pytest.mark.parametrize("url", UNREADABLE)
def test_an_endpoint_that_is_no_address_is_refused_at_registration(house: House, url: str) -> None:
    reply = house.client("worker", "acme")("POST", REGISTER, about("odd", url))
    assert (reply.status, reply.body["error"]) == (422, "invalid_input")
    assert reply.body["message"].startswith("endpoint_url")


@pytest.mark.parametrize("url", UNREADABLE)
def test_a_stored_endpoint_that_is_no_address_stops_no_other_probe(
    house: House, endpoint: str, url: str
) -> None:
    house.client("worker")("POST", REGISTER, about("good", f"{endpoint}/op"))
    for part in (house.store.backend, TenantBackend(house.store.backend, "acme")):
        facts = {"endpoint_url": url}
        part.register(
            model.WorkerRegistration(worker_id="odd", pool_id="t", metadata=facts, lease_seconds=99)
        )
    probed_again(house)
    pusher = house.client("pusher", "acme")
    assert pusher("POST", "/api/v1/workers/dispatch", {"worker_type": "t"}).status == 503


@pytest.mark.parametrize("body", ["[]", "null", "nonsense", '{"failures": "x"}', '{"more": 1}'])
def test_a_health_document_that_cannot_be_read_stops_no_probe(
    house: House, endpoint: str, body: str
) -> None:
    house.client("worker")("POST", REGISTER, about("good", f"{endpoint}/op"))
    house.client("worker", "acme")("POST", REGISTER, about("odd", f"{endpoint}/odd"))
    acme = TenantBackend(house.store.backend, "acme")
    acme.put(endpoint_workers.HEALTH, "odd", body, None, None)
    viewer = house.client("viewer", "acme")
    assert viewer("GET", "/api/v1/workers").status == 200
    probed_again(house)
    probed_again(house, "/odd/health")
    assert endpoint_workers.health(acme, "odd").last_healthy_at is not None, (
        "the next probe writes it anew"
    )


def test_background_passes_outlive_errors_that_have_no_name(
    house: House, endpoint: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    backend = house.store.backend
    house.client("worker")("POST", REGISTER, about("good", f"{endpoint}/op"))
    probed_again(house)

    def broken(*_: object) -> Any:
        raise ZeroDivisionError("a bug in a pass")

    with monkeypatch.context() as patched:
        patched.setattr(backend, "reap", broken)
        patched.setattr(endpoint_workers, "health", broken)
        until(house, lambda: logged(caplog) >= {"sprat.monitor", "sprat.server"})
    probed_again(house)
    gone = model.WorkerRegistration(worker_id="gone", pool_id="t", lease_seconds=1.0)
    backend.register(gone)
    until(house, lambda: backend.worker("gone").status == model.LOST)


def logged(caplog: pytest.LogCaptureFixture) -> set[str]:
    """The logs that hold the traceback of the bug."""
    return {record.name for record in caplog.records if record.exc_info is not None}


def test_the_authorities_are_read_once_for_all_probes(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[ssl.SSLContext] = []
    make = ssl.create_default_context
    monkeypatch.setattr(ssl, "create_default_context", lambda: made.append(make()) or made[-1])
    outbound._tls.cache_clear()
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]  # bound and not listening: it refuses connections
        target = Target(address="127.0.0.1", port=port, host="w", is_tls=True, path="/health")

        async def probe() -> list[outbound.Reached | None]:
            return await asyncio.gather(*(outbound.ask(target, seconds=5.0) for _ in range(20)))

        assert asyncio.run(probe()) == [None] * 20
    outbound._tls.cache_clear()
    assert len(made) == 1
