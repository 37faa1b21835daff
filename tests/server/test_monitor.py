"""The health monitor: three failures, three hundred seconds, recovery, and whom it may ask."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from houses import OPTIONS, Client, House

from sprat.config import project_file
from sprat.config.probe_settings import Lifecycle
from sprat.core.errors import InvalidInput
from sprat.server import monitor
from sprat.server.addresses import AllowList, Forbidden, Target
from sprat.server.outbound import Reached, ask
from sprat.store.memory.backend import MemoryBackend

RULES = Lifecycle()
WELL = Reached(status=200, content={"status": "healthy", "worker_status": "idle"})
REGISTER = "/api/v1/workers/register"


def about(worker_id: str, port: int = 5003) -> dict[str, Any]:
    url = f"http://192.168.1.201:{port}"
    return {"worker_id": worker_id, "worker_type": "backtesting", "endpoint_url": url}


def tick(house: House, *answers: Reached | None) -> list[monitor.Seen]:
    """One pass for each answer that the workers give, ten seconds apart."""
    seen = []
    for answer in answers:
        house.now += 10

        async def probe(_: str, answer: Reached | None = answer) -> Reached | None:
            return answer

        seen.append(asyncio.run(monitor.tick(house.store.backend, probe, RULES)))
    return seen


def status(viewer: Client, worker_id: str = "w") -> str | None:
    reply = viewer("GET", f"/api/v1/workers/{worker_id}")
    return reply.body["status"] if reply.status == 200 else None


def test_two_failures_are_not_enough_and_three_are(
    house: House, worker: Client, viewer: Client
) -> None:
    worker("POST", REGISTER, about("w"))
    tick(house, None, None)
    assert status(viewer) == "available"
    tick(house, WELL, None, None)
    assert status(viewer) == "available", "one success resets the count"
    assert tick(house, None)[0].unavailable == ("w",)
    assert status(viewer) == "temporarily_unavailable"
    tick(house, WELL)
    assert status(viewer) == "available"


def suspended(house: House) -> list[str]:
    return [one.worker_id for one in house.store.pool("backtesting").observe().suspended]


def test_an_unavailable_worker_is_suspended_for_the_scaling_of_its_pool(
    house: House, worker: Client
) -> None:
    worker("POST", REGISTER, about("w"))
    tick(house, None, None)
    assert suspended(house) == []
    tick(house, None, None)
    assert suspended(house) == ["w"]
    tick(house, WELL)
    assert suspended(house) == []
    tick(house, None, None, None)
    worker("POST", REGISTER, about("w"))
    assert suspended(house) == [], "it has shown that it is there"
    house.store.workers.heartbeat("w", {"suspended": True})
    tick(house, WELL)
    assert suspended(house) == ["w"], "what it says of itself is for itself to take back"


def test_any_other_answer_is_a_failure(house: House, worker: Client, viewer: Client) -> None:
    worker("POST", REGISTER, about("w"))
    moved = Reached(status=302, content={})
    tick(house, moved, Reached(status=500, content={}), moved)
    assert status(viewer) == "temporarily_unavailable"


def test_removal_comes_after_three_hundred_seconds_and_not_at_them(
    house: House, worker: Client, viewer: Client
) -> None:
    worker("POST", REGISTER, about("w"))
    tick(house, WELL)
    assert not any(seen.removed for seen in tick(house, *[None] * 30)), "exactly 300 s stays"
    assert status(viewer) == "temporarily_unavailable"
    assert tick(house, None)[0].removed == ("w",)
    assert status(viewer) is None
    worker("POST", REGISTER, about("w"))
    assert status(viewer) == "available", "back, and at once"
    tick(house, None, None)
    assert status(viewer) == "available", "with its failures forgotten"


def test_what_a_worker_says_about_itself_is_shown(
    house: House, worker: Client, viewer: Client
) -> None:
    worker("POST", REGISTER, about("w"))
    busy = {"worker_status": "busy", "current_operation": "op-7"}
    tick(house, Reached(status=200, content=busy))
    found = viewer("GET", "/api/v1/workers/w").body
    assert (found["status"], found["current_operation_id"]) == ("busy", "op-7")
    tick(house, WELL)
    assert status(viewer) == "available"


def test_a_healthy_worker_outlives_its_lease(house: House, worker: Client, viewer: Client) -> None:
    worker("POST", REGISTER, about("w"))
    for _ in range(3):
        house.now += 80_000
        tick(house, WELL)
        house.store.workers.reap()
    assert status(viewer) == "available"


def test_probes_run_side_by_side(house: House, worker: Client) -> None:
    for number in range(20):
        worker("POST", REGISTER, about(f"w{number}", number + 1))
    together = 0
    most = 0

    async def probe(_: str) -> Reached | None:
        nonlocal together, most
        together += 1
        most = max(most, together)
        while most < 20:
            await asyncio.sleep(0)
        together -= 1
        return WELL

    seen = asyncio.run(monitor.tick(house.store.backend, probe, RULES))
    assert (seen.probed, most) == (20, 20)


def test_of_several_servers_one_probes_each_time() -> None:
    now = [0.0]
    backend = MemoryBackend(clock=lambda: now[0])
    assert [monitor.is_our_turn(backend, RULES) for _ in range(3)] == [True, False, False]
    now[0] += RULES.health_check_interval
    assert monitor.is_our_turn(backend, RULES)


# -- whom it may ask ----------------------------------------------------------------------------


class Canary(BaseHTTPRequestHandler):
    """Must not be reached."""

    hits: list[str] = []
    answer = (200, {}, b'{"worker_status": "idle"}')

    def do_GET(self) -> None:
        self.hits.append(self.path)
        code, headers, body = self.answer
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Not on the terminal."""


@pytest.fixture
def canary() -> Iterator[ThreadingHTTPServer]:
    Canary.hits.clear()
    with ThreadingHTTPServer(("127.0.0.1", 0), Canary) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


LOOPBACK = [
    *("127.0.0.1", "127.1", "127.0.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1"),
    *("017700000001", "127.255.255.254", "0", "0.0.0.0", "localhost", "LOCALHOST", "ip6-localhost"),
    *("[::1]", "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "[0:0:0:0:0:ffff:7f00:0001]"),
    *("[::127.0.0.1]", "[64:ff9b::7f00:1]", "[64:ff9b::127.0.0.1]", "[2002:7f00:1::]"),
    *("[fe80::1]", "169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]"),
    *("0x7f.0.0.1", "127.0.0.1.", "2130706433.", "0x7F000001", "[2001:0:7f00:1::]"),
]


@pytest.mark.parametrize("host", LOOPBACK)
@pytest.mark.parametrize(
    "allowed", [("10.0.0.0/8", "workers.internal"), ("2000::/3", "64:ff9b::/96")]
)
def test_no_form_of_a_forbidden_address_is_connected_to(
    canary: ThreadingHTTPServer, host: str, allowed: tuple[str, ...]
) -> None:
    with pytest.raises(Forbidden):
        AllowList(allowed).target(f"http://{host}:{canary.server_port}", "/health")
    assert Canary.hits == []


def test_a_name_that_changes_its_address_is_resolved_once(canary: ThreadingHTTPServer) -> None:
    answers = [["10.0.0.7"], ["127.0.0.1"]]
    hosts = AllowList(["10.0.0.0/8"])
    target = hosts.target("http://rebind.test:1", "/health", lambda *_: answers.pop(0))
    assert target.address == "10.0.0.7", "what was checked is what is connected to"
    both = ["10.0.0.7", "127.0.0.1"]
    with pytest.raises(Forbidden):
        hosts.target("http://both.test:1", "/health", lambda *_: both)
    with pytest.raises(Forbidden):
        AllowList(["evil.test"]).target("http://evil.test", "/", lambda *_: ["127.0.0.1"])


def test_a_redirect_is_not_followed(canary: ThreadingHTTPServer) -> None:
    Canary.answer = (302, {"Location": f"http://127.0.0.1:{canary.server_port}/secret"}, b"")
    target = Target(
        address="127.0.0.1", port=canary.server_port, host="h", is_tls=False, path="/health"
    )
    try:
        reached = asyncio.run(ask(target, seconds=5))
    finally:
        Canary.answer = (200, {}, b'{"worker_status": "idle"}')
    assert reached is not None
    assert reached.status == 302
    assert Canary.hits == ["/health"]


def test_a_large_or_odd_answer_does_no_harm(canary: ThreadingHTTPServer) -> None:
    target = Target(
        address="127.0.0.1", port=canary.server_port, host="h", is_tls=False, path="/health"
    )
    good = Canary.answer
    try:
        for body in (b"x" * 10_000_000, b"[" * 100_000, b"\xff", b"null"):
            Canary.answer = (200, {}, body)
            reached = asyncio.run(ask(target, seconds=5))
            assert reached is None or reached.content == {}
    finally:
        Canary.answer = good


@pytest.mark.parametrize(
    "entry", ["", "10.0.0.0/33", "a b", "10.0.0.1/8", "*", "http://x", "127.1"]
)
def test_an_odd_entry_of_the_list_is_refused(entry: str) -> None:
    with pytest.raises(InvalidInput):
        AllowList([entry])


def test_a_server_probes_real_workers_and_sees_them_go(
    canary: ThreadingHTTPServer,
) -> None:
    rules = Lifecycle(
        health_check_interval=0.05,
        health_check_timeout=5.0,
        health_failure_threshold=2,
        probe_hosts=("127.0.0.1",),
    )
    house = House(OPTIONS.replace(lifecycle=rules))
    try:
        url = f"http://127.0.0.1:{canary.server_port}"
        for tenant in (None, "acme"):
            body = {**about(f"w-{tenant}"), "endpoint_url": f"{url}/{tenant}"}
            assert house.client("worker", tenant)("POST", REGISTER, body).status == 200
        wait_for(lambda: {"/None/health", "/acme/health"} <= set(step(house)))
        canary.shutdown()
        canary.server_close()
        for tenant in (None, "acme"):
            viewer = house.client("viewer", tenant)
            wait_for(
                lambda v=viewer, t=tenant: (
                    (step(house), status(v, f"w-{t}"))[1] == "temporarily_unavailable"
                )
            )
    finally:
        house.close()


def step(house: House) -> list[str]:
    house.now += 1.0  # the store's clock, by which the turns go
    return Canary.hits


def wait_for(condition: Any) -> None:
    done = threading.Event()
    for _ in range(600):
        if condition():
            return
        done.wait(0.05)
    raise AssertionError("it does not happen")


def test_lifecycle_is_read_from_the_file(tmp_path: Any) -> None:
    path = tmp_path / "sprat.yml"
    path.write_text("worker_lifecycle: {removal_threshold: 5m, probe_hosts: [10.0.0.0/8]}\n")
    found = project_file.load(str(path)).worker_lifecycle
    assert (found.removal_threshold, found.probe_hosts) == (300.0, ("10.0.0.0/8",))
    assert found.health_check_interval == 10.0
    for bad in ("removal_treshold: 1", "health_failure_threshold: 0", "probe_hosts: 10.0.0.0/8"):
        path.write_text(f"worker_lifecycle: {{{bad}}}\n")
        with pytest.raises(InvalidInput, match="worker_lifecycle"):
            project_file.load(str(path))
    assert json.dumps(Lifecycle().as_dict())
