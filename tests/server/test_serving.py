"""`sprat serve` and `sprat keys` as real processes."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from houses import Client

PATIENCE = 60.0
SPRAT = (sys.executable, "-m", "sprat")


def sprat(place: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    given = {**os.environ, "SPRAT_URL": f"sqlite:///{place}/fleet.db", **more}
    command = [*SPRAT, *words]
    return subprocess.run(
        command, cwd=place, env=given, capture_output=True, text=True, timeout=PATIENCE, check=False
    )


class Running:
    def __init__(self, place: Path, *words: str) -> None:
        given = {**os.environ, "SPRAT_URL": f"sqlite:///{place}/fleet.db"}
        command = [*SPRAT, "serve", "--port", "0", *words]
        self.process = subprocess.Popen(command, cwd=place, env=given, stderr=subprocess.PIPE)
        self.said = ""
        self.port = int(self.until(r"serving .* on https?://[^ ]*:(\d+)\D")[1])

    def until(self, pattern: str) -> re.Match[str]:
        """Read what the server logs until this comes."""
        assert self.process.stderr is not None
        while not (found := re.search(pattern, self.said)):
            ready, _, _ = select.select([self.process.stderr], [], [], PATIENCE)
            part = os.read(self.process.stderr.fileno(), 65536).decode() if ready else ""
            assert part, f"no {pattern!r} in {self.said!r}"
            self.said += part
        return found

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        assert self.process.stderr is not None
        self.process.stderr.close()
        return code


@contextmanager
def running(place: Path, *words: str) -> Iterator[Running]:
    server = Running(place, *words)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            assert server.stop() == 0


def test_a_fleet_works_through_the_server(tmp_path: Path) -> None:
    (tmp_path / "sprat.yml").write_text("pools: {papers: {command: [cat]}}\n")
    assert sprat(tmp_path, "apply").returncode == 0
    key = sprat(tmp_path, "keys", "create", "--role", "admin").stdout.strip()
    with running(tmp_path, "--linger", "0") as server:
        there = {"SPRAT_URL": f"http://127.0.0.1:{server.port}", "SPRAT_API_KEY": key}
        assert sprat(tmp_path, "push", "papers", '{"n": 1}', **there).returncode == 0
        done = sprat(tmp_path, "work", "papers", "--max-jobs", "1", "--json", **there)
        assert json.loads(done.stdout)["jobs"] == 1
        sprat(tmp_path, "push", "papers", '{"n": 2}', **there)
        checked = sprat(tmp_path, "check", "papers", "--json", **there)
        assert json.loads(checked.stdout)["spawned"] == 1
        sprat(tmp_path, "watch", "papers", **there)
        status = json.loads(sprat(tmp_path, "status", "papers", "--json", **there).stdout)
        assert status["pools"][0]["done"] == 2
        wrong = sprat(tmp_path, "status", **{**there, "SPRAT_API_KEY": "sprat_no"})
        assert wrong.returncode == 2
        assert "SPRAT_API_KEY" in wrong.stderr


def test_a_server_that_launches_has_workers_appear_after_a_push(tmp_path: Path) -> None:
    (tmp_path / "sprat.yml").write_text("pools: {papers: {command: [cat]}}\n")
    assert sprat(tmp_path, "apply").returncode == 0
    with running(tmp_path, "--no-auth", "--launch", "--linger", "0") as server:
        client = Client(server.port)
        assert client("POST", "/api/v1/pools/papers/jobs", {"data": 1}).status == 200
        assert sprat(tmp_path, "watch", "papers").returncode == 0
        counts = client("GET", "/api/v1/pools/papers").body["counts"]
        assert counts["done"] == 1


def test_the_doctor_looks_at_a_server(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth", "--linger", "0") as server:
        there = {"SPRAT_URL": f"http://127.0.0.1:{server.port}"}
        done = sprat(tmp_path, "doctor", **there)
        assert done.returncode == 0, done.stdout
        assert f"127.0.0.1:{server.port}, an orchestrator over sqlite" in done.stdout


def test_processes_share_the_port_and_are_replaced(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth", "--processes", "2", "--linger", "0") as server:
        server.until(r"(?s)(Application startup complete.*){2}")
        client = Client(server.port)
        assert client("POST", "/api/v1/pools/p/jobs", {"data": 1}).status == 200
        pid = server.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        assert len(children) == 2
        os.kill(int(children[0]), signal.SIGKILL)
        server.until(r"(?s)starting another.*Application startup complete")
        assert client("GET", "/api/v1/pools").body == {"pools": ["p"], "next": None}
        assert server.stop() == 0


def test_all_processes_of_a_server_report_the_same_counters(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth", "--processes", "2", "--linger", "0") as server:
        server.until(r"(?s)(Application startup complete.*){2}")
        client = Client(server.port)
        answered = set()
        for n in range(1, 201):
            assert client("POST", "/api/v1/pools/p/jobs", {"data": n}).status == 200
            text = client("GET", "/metrics").body
            assert f'sprat_worker_pool_jobs_added_total{{pool="p"}} {n}\n' in text
            answered |= set(re.findall(r'request_seconds_total{process="[^"]*:(\d)"}', text))
            if answered == {"1", "2"}:
                break
        assert answered == {"1", "2"}


def test_switching_keys_off_is_said_loudly(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth", "--linger", "0") as server:
        server.until("API KEYS ARE OFF")
    with running(tmp_path, "--linger", "0", "--json-logs") as server:
        server.until("there is no API key yet")
        for line in server.said.splitlines()[:-1]:
            assert json.loads(line)["level"]


def test_a_signal_is_announced_before_the_end(tmp_path: Path) -> None:
    with running(tmp_path, "--no-auth", "--linger", "30") as server:
        client = Client(server.port)
        assert client("GET", "/readyz").status == 200
        server.process.send_signal(signal.SIGTERM)
        server.until("shutting down")
        assert client("GET", "/readyz").status == 503
        assert client("POST", "/api/v1/pools/p/workers", {"worker_id": "w"}).status == 503
        assert client("POST", "/api/v1/pools/p/jobs", {"data": 1}).status == 200, "others go on"
        assert server.stop() == 0, "a second signal does not wait"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--no-auth", "--host", "0.0.0.0"), "without API keys"),
        (("--certificate", "x.pem"), "both --certificate and --private-key"),
        (("--certificate", "x.pem", "--private-key", "y.pem"), "cannot be read"),
        (
            ("--certificate", __file__, "--private-key", __file__),
            "must be a certificate and its key",
        ),
        (("--host", "192.0.2.1"), "cannot serve on"),
    ],
)
def test_what_cannot_be_served_is_told_in_a_sentence(
    tmp_path: Path, words: tuple[str, ...], sentence: str
) -> None:
    done = sprat(tmp_path, "serve", *words)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_keys_from_the_command_line(tmp_path: Path) -> None:
    sprat(tmp_path, "push", "p", "1", "--create")
    assert sprat(tmp_path, "keys", "list").stdout.startswith("no keys yet: `sprat keys create")
    made = json.loads(
        sprat(
            tmp_path,
            *("keys", "create", "--role", "worker", "--role", "controller"),
            *("--tenant", "acme", "--label", "gpu box", "--json"),
        ).stdout
    )
    assert made["roles"] == ["controller", "worker"]
    again = json.loads(sprat(tmp_path, "keys", "rotate", made["id"], "--json").stdout)
    listed = json.loads(sprat(tmp_path, "keys", "list", "--json").stdout)["keys"]
    assert {one["id"] for one in listed} == {made["id"], again["id"]}
    assert "digest" not in listed[0]
    assert sprat(tmp_path, "keys", "revoke", made["id"]).returncode == 0
    assert sprat(tmp_path, "keys", "revoke", made["id"]).returncode == 2
    assert made["id"] not in sprat(tmp_path, "keys", "list").stdout


def test_a_lifecycle_that_watches_no_worker_is_reported_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "sprat.yml").write_text("worker_lifecycle: {health_check_interval: 10}\n")
    assert sprat(tmp_path, "keys", "create", "--role", "admin").returncode == 0
    with running(tmp_path, "--linger", "0") as server:
        server.until("worker_lifecycle has no probe_hosts")
    told = sprat(tmp_path, "doctor").stdout
    assert re.search(r"warn +lifecycle +worker_lifecycle has no probe_hosts", told)
    (tmp_path / "sprat.yml").write_text("worker_lifecycle: {probe_hosts: [10.0.0.0/8]}\n")
    assert "probe_hosts" not in sprat(tmp_path, "doctor").stdout
