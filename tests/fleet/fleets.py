"""A fleet under test: a pool in a file of its own, and real processes that a marker finds again."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from patience import PATIENCE, eventually

from sprat.core import model
from sprat.fleet import checker
from sprat.store.open_store import open_store

HERE = Path(__file__).parent
MARKER = "SPRAT_FLEET_UNDER_TEST"
POOL = "papers"


class Fleet:
    """The pool `papers` of a fresh store, its processes, and the log that its jobs write."""

    def __init__(self, place: Path, name: str, url: str) -> None:
        self.place = place
        self.mark = f"{MARKER}={name}".encode()
        self.url = url
        self.store = open_store(self.url)
        self.pool = self.store.pool(POOL)
        self.log = place / "jobs.log"
        self.may_stay = False  # set by a test that leaves processes behind on purpose
        self.set()

    def set(self, **changes: object) -> None:
        """Change settings; those for a test are quicker than the defaults."""
        state = self.pool.state()
        if not state.version:
            quick = {"idle_seconds": 0.3, "heartbeat_seconds": 1.0, "retry_base_seconds": 0.05}
            changes = {"directory": str(HERE), "handler": "jobs:echo", **quick, **changes}
        self.pool.configure(**changes)

    def job(self, **data: object) -> dict[str, object]:
        return {"log": str(self.log), **data}

    def push(self, *, max_retries: int = model.MAX_RETRIES, **data: object) -> str:
        return self.pool.push(self.job(**data), max_retries=max_retries)

    def check(self, **options: object) -> checker.Checked:
        return checker.check(self.store, POOL, **options)  # type: ignore[arg-type]

    # -- what the store says ----------------------------------------------------------------

    def item(self, item_id: str) -> model.WorkItem:
        return self.pool.get(item_id)

    def workers(self, *status: str) -> list[model.WorkerRecord]:
        return self.store.workers.list(status=status or None, pool_id=POOL)

    def worker_of(self, item_id: str) -> model.WorkerRecord:
        """The worker that runs this item."""
        claimed_by = eventually(lambda: self.item(item_id).claimed_by, what="nobody claims it")
        found = self.store.workers.get(claimed_by)
        assert found is not None
        return found

    def until_done(self, n: int, within: float = PATIENCE) -> None:
        eventually(lambda: self.pool.counts().done == n, self.pool.counts, within)

    def until_status(self, item_id: str, status: str, within: float = PATIENCE) -> model.WorkItem:
        eventually(lambda: self.item(item_id).status == status, lambda: self.item(item_id), within)
        return self.item(item_id)

    # -- what the jobs say ------------------------------------------------------------------

    def lines(self) -> list[list[str]]:
        """Whole lines of the log: what happened, and the rest of each."""
        text = self.log.read_text() if self.log.exists() else ""
        return [line.split() for line in text.splitlines()]

    def happened(self, what: str) -> list[list[str]]:
        return [rest for first, *rest in self.lines() if first == what]

    def until(self, what: str, n: int = 1, within: float = PATIENCE) -> list[list[str]]:
        eventually(lambda: len(self.happened(what)) >= n, lambda: (what, self.lines()), within)
        return self.happened(what)

    def starts(self) -> Counter[str]:
        return Counter(item_id for item_id, *_ in self.happened("start"))

    # -- processes --------------------------------------------------------------------------

    def processes(self) -> dict[int, str]:
        """Our living processes, each with its command line."""
        return dict(self._processes())

    def _processes(self) -> Iterator[tuple[int, str]]:
        for entry in os.listdir("/proc"):
            if entry.isdigit() and int(entry) != os.getpid():
                try:
                    if self.mark in Path(f"/proc/{entry}/environ").read_bytes().split(b"\0"):
                        command = Path(f"/proc/{entry}/cmdline").read_bytes()
                        yield int(entry), command.replace(b"\0", b" ").decode()
                except OSError:
                    pass  # it has just ended, or is not ours to read

    def fork_servers(self) -> list[int]:
        """The fork servers: of our processes those whose parent is not one of ours."""
        ours = self.processes()
        return [pid for pid in ours if parent_of(pid) not in ours and "fork_server" in ours[pid]]

    def until_gone(self, within: float = PATIENCE) -> None:
        """All processes leave by themselves."""
        eventually(lambda: not self.processes(), self.processes, within)

    def end(self) -> None:
        """Stop what is still there, by its id; those that were being forked as well."""
        end = time.monotonic() + PATIENCE
        while self.processes():
            for pid in self.processes():
                kill(pid, signal.SIGKILL)
            assert time.monotonic() < end, self.processes()
            time.sleep(0.01)

    def close(self) -> None:
        self.store.close()


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def parent_of(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def is_alive(pid: int) -> bool:
    """Whether the process still runs; a dead one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False
