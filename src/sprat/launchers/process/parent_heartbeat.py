"""Heartbeats that a store proxy sends for the workers of its fork server, between requests.

They go on while the workers' processes run. A process that is stopped or dead gets none, so its
lease ends. While a launch is being prepared (the fork server imports user code), the process of the
fork server stands for it, up to the pool's start deadline.
"""

from __future__ import annotations

import os
import select

from sprat.core.errors import SpratError
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import Backend

WATCH = "watch"  # a request without a reply
PART = 0.5  # of a worker's own heartbeat: half as long, so one may be missed
NOT_RUNNING = "TtZXx"  # stopped, traced, dead


class ParentHeartbeat:
    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._parent = os.getppid()
        self._processes: Sequence[tuple[int, str]] = ()
        self._received = b""  # of requests
        self._pause = 0.0
        self._next_at = 0.0
        self._prepared_until = 0.0

    @property
    def preparing(self) -> list[str]:
        """The launches that the parent has not forked yet."""
        return [worker_id for pid, worker_id in self._processes if pid == self._parent]

    def watch(
        self, processes: Sequence[tuple[int, str]], heartbeat: float, deadline: float
    ) -> None:
        """Send heartbeats for these workers from now on."""
        self._processes = processes
        self._pause = PART * heartbeat
        self._next_at = runtime.monotonic() + self._pause
        self._prepared_until = runtime.monotonic() + deadline

    def line(self, descriptor: int) -> bytes:
        """The next request, or nothing when the fork server is gone. Heartbeats are sent
        meanwhile."""
        while b"\n" not in self._received:
            if self._processes and not self._is_readable(descriptor):
                self._send()
                continue
            part = os.read(descriptor, 1 << 16)
            if not part:
                return b""
            self._received += part
        line, _, self._received = self._received.partition(b"\n")
        return line + b"\n"

    def _is_readable(self, descriptor: int) -> bool:
        left = self._next_at - runtime.monotonic()
        return bool(select.select([descriptor], [], [], max(0.0, left))[0])

    def _send(self) -> None:
        self._next_at = runtime.monotonic() + self._pause
        alive = [worker_id for pid, worker_id in self._processes if self._is_alive(pid)]
        if not alive:
            return
        try:
            self._backend.keep_alive(alive)
        except SpratError:
            pass  # the store is away, or a worker's key does not allow it: the next one may do

    def _is_alive(self, pid: int) -> bool:
        if pid == self._parent and runtime.monotonic() > self._prepared_until:
            return False
        return is_running(pid)


def is_running(pid: int) -> bool:
    """Whether the process exists and is not stopped."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in NOT_RUNNING
    except OSError:
        pass
    if os.path.isdir("/proc/self"):
        return False
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def read_line(descriptor: int) -> bytes:
    """One line, or nothing when the other side is gone."""
    received = b""
    while not received.endswith(b"\n"):
        part = os.read(descriptor, 1 << 16)
        if not part:
            return b""
        received += part
    return received
