"""The command: once, dry, as JSON, with keys, with endpoints, and quiet when there is nothing."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import time
from pathlib import Path

import pytest
from controllers import POOL, Place, ask, eventually

SAMPLE = re.compile(r'^(sprat_controller_\w+)\{((?:\w+="[^"]*",?)*)\} (\S+)$')


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_once_runs_one_pass_over_every_pool_and_leaves(place: Place) -> None:
    place.configure("images", handler="jobs:nap")
    place.store.pool("parked").push("has no processor")
    place.config(f"store: {place.url}\n", max_replicas=2)
    place.push(5)
    done = place.run("controller", "--once", "--json")
    assert done.returncode == 0, done.stderr
    passes = {one["pool"]: one for one in lines(done.stdout)}
    assert passes.keys() == {"papers", "images"}
    assert (passes["papers"]["spawned"], passes["images"]["spawned"]) == (2, 0)
    assert passes["papers"]["limits"]["max_replicas"] == 2  # type: ignore[index]
    place.until_done(5)


def test_once_says_that_a_pass_failed(place: Place) -> None:
    place.config(f"store: {place.url}\nscale_sets: [{{pool: papers}}, {{pool: nobody}}]\n")
    place.push(1)
    done = place.run("controller", "--once")
    assert done.returncode == 1
    assert "nobody: the pass failed: pool nobody has no handler" in done.stderr
    assert "papers: 1 waiting" in done.stdout
    place.until_done(1)


def test_once_leaves_it_to_the_leader(place: Place) -> None:
    place.config(f"store: {place.url}\n")
    controller = place.controller()
    controller.until("papers: ")
    done = place.run("controller", "--once")
    assert done.returncode == 0
    assert "papers: another controller leads" in done.stderr
    assert controller.stop() == 0
    assert place.run("controller", "--once").stdout.startswith("papers: "), "it gave the lease up"


def test_an_orchestrator_that_is_not_there_fails_the_pass(place: Place) -> None:
    place.config()
    done = place.run("controller", "--once")
    assert done.returncode == 1
    assert "no answer from http://127.0.0.1:" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_dry_run_changes_nothing(place: Place) -> None:
    place.config(f"store: {place.url}\n", max_replicas=3)
    place.push(5)
    done = place.run("controller", "--dry-run")
    assert done.returncode == 0
    assert "would have launched 3 workers" in done.stdout
    [planned] = lines(place.run("controller", "--dry-run", "--json").stdout)
    assert (planned["spawned"], planned["desired_workers"]) == (3, 3)
    assert place.workers() == []
    assert place.pool.decisions() == []
    assert place.store.backend.document("controller", POOL) is None


@pytest.mark.parametrize("what", ["machine_group: gpu", "pool: papers"])
def test_a_tenants_key_is_enough(place: Place, what: str) -> None:
    """With real keys: the roles controller and worker, in one tenant's part of the store. A whole
    pool goes by its own policy, which keeps notes."""
    roles = ("--role", "controller", "--role", "worker", "--tenant", "acme")
    made = place.run("keys", "create", *roles, SPRAT_URL=place.url)
    key = made.stdout.strip()
    place.configure("acme.papers", policy_options={"wait_seconds": 0.2, "cold_start_seconds": 2.0})
    tenants = place.store.pool("acme.papers")
    server = place._start(
        *("serve", "serve", "--port", str(place.port), "--linger", "0"), SPRAT_URL=place.url
    )
    server.until(r"serving .* on http")
    place.config(f"orchestrator_url: {place.here}\ntenant_id: acme\n{what}\n", max_replicas=2)
    controller = place.controller(SPRAT_API_KEY=key)
    controller.until("papers.*: ")
    tenants.push_many([{"n": n, "log": str(place.log)} for n in range(10)], tenant="acme")
    eventually(lambda: tenants.counts().done == 10, lambda: (tenants.counts(), controller.text()))
    assert "failed" not in controller.text()
    assert controller.stop() == 0


def test_endpoints_tell_how_it_is(place: Place) -> None:
    place.config(f"store: {place.url}\n", max_replicas=3)
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    eventually(lambda: ask(port, "/readyz")[0] == 200)
    assert ask(port, "/healthz") == (200, '{"status": "ok"}\n')
    assert ask(port, "/readyz", "HEAD")[1] == ""
    assert ask(port, "/nowhere")[0] == 404
    assert ask(port, "/metrics", "POST", {})[0] == 501
    place.push(4)
    place.until_done(4)
    eventually(lambda: figures(port)["scaling_decisions_total", "up"] >= 1)
    found = figures(port)
    assert found["failed_passes_total", ""] == 0
    assert found["passes_total", ""] >= 1
    assert found["is_leader", ""] == 1
    assert found["max_workers", ""] == 3
    assert abs(found["last_pass_timestamp_seconds", ""] - time.time()) < 60
    [one] = json.loads(ask(port, "/readyz")[1])["scale_sets"]
    assert (one["pool"], one["leader"], one["error"]) == ("papers", True, None)


def test_slow_clients_do_not_keep_a_probe_waiting(place: Place) -> None:
    place.config(f"store: {place.url}\n")
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    slow = [socket.create_connection(("127.0.0.1", port), timeout=30) for _ in range(40)]
    for connection in slow:
        with contextlib.suppress(OSError):  # the oldest are ended while the others begin
            connection.sendall(b"G")
    for _ in range(3):
        assert ask(port, "/healthz")[0] == 200
    for connection in slow:
        connection.close()


def figures(port: int) -> dict[tuple[str, str], float]:
    """Every sample by its name and direction; each line is one that Prometheus can read."""
    found, kinds = {}, {}
    for line in ask(port, "/metrics")[1].splitlines():
        if line.startswith("#"):
            _, what, name, rest = line.split(" ", 3)
            assert what in ("HELP", "TYPE")
            kinds[name] = rest
            continue
        sample = SAMPLE.match(line)
        assert sample, line
        name, labels, value = sample.groups()
        assert kinds[name] in ("gauge", "counter")
        pairs = dict(pair.split("=") for pair in labels.split(","))
        direction = pairs.get("direction", "").strip('"')
        found[name.removeprefix("sprat_controller_"), direction] = float(value)
    return found


def test_an_address_that_is_taken_is_told_in_a_sentence(place: Place) -> None:
    place.config(f"store: {place.url}\n")
    controller = place.controller("--listen", "127.0.0.1:0")
    port = controller.until(r"listening on http://127.0.0.1:(\d+)")[1]
    done = place.run("controller", "--listen", f"127.0.0.1:{port}")
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}: Address already in use" in done.stderr


def test_sigterm_ends_it_and_the_workers_go_on(place: Place) -> None:
    place.configure(handler="jobs:until_told")
    go = place.path / "go"
    place.config(f"store: {place.url}\nalgorithm: queue_depth\n", max_replicas=1)
    controller = place.controller()
    place.push(1, go=str(go))
    eventually(lambda: place.pool.counts().claimed == 1)
    assert controller.stop() == 0
    assert "the controller has left; the workers go on" in controller.text()
    assert place.pool.counts().claimed == 1
    go.touch()
    place.until_done(1)
    eventually(lambda: not place.workers("active"), "without a controller they leave by themselves")


def test_a_drain_that_takes_too_long_hands_the_job_back_uncharged(place: Place) -> None:
    place.configure(handler="jobs:until_told")
    go = place.path / "go"
    text = f"store: {place.url}\nalgorithm: fixed\ndrain_deadline_seconds: 1\n"
    place.config(text, max_replicas=1)
    controller = place.controller()
    place.push(1, go=str(go))
    eventually(lambda: place.pool.counts().claimed == 1)
    [first] = place.workers("active")
    place.store.workers.update_status(first, "terminating")
    controller.until("handed back what 1 worker did not finish in time")
    ended = place.store.workers.get(first.worker_id)
    assert ended is not None
    assert (ended.status, ended.reason) == (
        "terminated",
        "told to leave, and still busy after 1 s",
    )
    go.touch()
    place.until_done(1)
    [item] = place.pool.items("done")
    assert (item.attempts, item.given_back) == (1, 1)
    assert item.claimed_by != first.worker_id
    eventually(lambda: not is_running(first.pid), "the worker finds out, and leaves")


def is_running(pid: int | None) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.parametrize("kind", ["sqlite", "http"])
def test_nothing_to_do_costs_next_to_nothing(place: Place, kind: str) -> None:
    """No pass but those that are due, and hardly any time of the processor; and new work wakes
    it long before the next pass is due. Another pool's work does not keep it busy."""
    where = f"store: {place.url}\npool: papers\n"
    if kind == "http":
        place.serve()
        where = f"orchestrator_url: {place.here}\npool: papers\n"
    place.push(3, group="elsewhere")
    place.config(f"{where}machine_group: gpu\n", poll_interval_seconds=3600)
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    eventually(lambda: figures(port).get(("passes_total", "")))
    before, began = cpu_seconds(controller.process.pid), time.monotonic()
    eventually(lambda: time.monotonic() - began > 3.0)
    used = cpu_seconds(controller.process.pid) - before
    assert used < 0.1 * (time.monotonic() - began), f"{used} s"
    assert figures(port)["passes_total", ""] <= 2, "the first one, and one ring"


def test_a_pool_that_is_resumed_wakes_it(place: Place) -> None:
    place.config(f"store: {place.url}\n", poll_interval_seconds=3600)
    place.pool.pause()
    place.push(1)
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    eventually(lambda: figures(port).get(("passes_total", "")))
    assert place.workers() == []
    place.pool.resume()
    place.until_done(1)


def test_new_work_wakes_it(place: Place) -> None:
    place.serve()
    place.config(poll_interval_seconds=3600)
    controller = place.controller("--listen", "127.0.0.1:0")
    port = int(controller.until(r"listening on http://127.0.0.1:(\d+)")[1])
    eventually(lambda: figures(port).get(("passes_total", "")))
    place.push(1)
    place.push(1, group="gpu")
    place.until_done(2)


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_explain_says_who_scales_the_pool(place: Place) -> None:
    place.config(f"store: {place.url}\nalgorithm: step\n")
    controller = place.controller()
    controller.until("papers: ")
    said = place.run("explain", "papers", SPRAT_URL=place.url).stdout
    assert (
        f"a controller scales it: {os.uname().nodename}, process {controller.process.pid}" in said
    )
    assert said.startswith("papers: 0 waiting: the step of 0"), "by what the controller goes"
    controller.stop()
    said = place.run("explain", "papers", SPRAT_URL=place.url).stdout
    assert "a controller" not in said


def test_ctrl_c_is_as_good_as_sigterm(place: Place) -> None:
    place.config(f"store: {place.url}\n")
    controller = place.controller()
    controller.until("papers: ")
    controller.signal(signal.SIGINT)
    assert controller.process.wait(60) == 0
    assert place.store.backend.document("controller", POOL) is None
