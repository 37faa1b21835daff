"""No wake-up is lost, whatever happens between a worker's look and its wait."""

from __future__ import annotations

import asyncio

import pytest

from sprat.core.model import WorkerRegistration
from sprat.server.long_poll import LongPolls
from sprat.server.quotas import KnownPools
from sprat.server.threads import Threads
from sprat.store.backend import WorkerRef
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

PATIENCE = 20.0


@pytest.mark.parametrize("status", ["terminating", "terminated", "lost"])
def test_a_worker_that_has_to_leave_while_it_takes_its_seat_is_woken(
    monkeypatch: pytest.MonkeyPatch, status: str
) -> None:
    backend = MemoryBackend()
    store = Store(backend)
    store.pool("papers").configure()
    store.workers.register(WorkerRegistration(worker_id="w1"))
    threads = Threads(2)
    long_polls = LongPolls(backend, threads, KnownPools(backend))
    look = backend.worker

    def ends_after_the_look(worker_id: str) -> object:
        record = look(worker_id)
        monkeypatch.setattr(backend, "worker", look)
        store.workers.update_status(worker_id, status)
        long_polls.worker_changed(worker_id)
        return record

    monkeypatch.setattr(backend, "worker", ends_after_the_look)

    async def wait() -> bool:
        async with asyncio.timeout(PATIENCE):
            return await long_polls.wait("papers", WorkerRef(worker_id="w1"), 3600.0)

    try:
        assert asyncio.run(wait()) is False
    finally:
        long_polls.close()
        threads.close()
