"""`sprat serve` as a process of its own, and what it costs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import sprat
from sprat.server import keys

TICKS = os.sysconf("SC_CLK_TCK")


class Running(NamedTuple):
    url: str
    port: int
    key: str
    pid: int

    def family(self) -> list[int]:
        """The server's processes."""
        children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        return [self.pid, *map(int, children)]

    def cpu_seconds(self) -> float:
        total = 0
        for pid in self.family():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICKS

    def megabytes(self) -> float:
        lines = Path(f"/proc/{self.pid}/status").read_text().splitlines()
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))

    def threads(self) -> int:
        return len(os.listdir(f"/proc/{self.pid}/task"))


@contextmanager
def running(place: Path, processes: int) -> Iterator[Running]:
    """A server over a fresh SQLite file in this directory, with one key."""
    url = f"sqlite:///{place}/fleet.db"
    with sprat.open_store(url) as store:
        _, key = keys.create(store.backend, ("admin",))
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", "--url", url, "--port", str(port), "--processes", str(processes)]
    with open(place / "server.log", "wb") as log:
        process = subprocess.Popen([sys.executable, "-m", "sprat", *words], stderr=log)
    try:
        _wait_for(port)
        yield Running(f"http://127.0.0.1:{port}", port, key, process.pid)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(60)


def _wait_for(port: int) -> None:
    for _ in range(600):
        try:
            with socket.create_connection(("127.0.0.1", port), 1) as connection:
                connection.sendall(b"GET /readyz HTTP/1.1\r\nhost: localhost\r\n\r\n")
                if connection.recv(100).startswith(b"HTTP/1.1 200"):
                    return
        except OSError:
            pass
        time.sleep(0.05)
    raise SystemExit("the server does not start")
