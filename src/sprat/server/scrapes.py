"""One scrape of /metrics at a time, in a thread of its own: however long it takes, requests keep
theirs. Scrapes of the same tenant that come meanwhile get the text of the one that is under way."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from sprat.server import metrics
from sprat.store.backend import Backend


class Scrapes:
    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="sprat-metrics")
        self._under_way: dict[str | None, asyncio.Future[bytes]] = {}  # by tenant

    async def text(
        self, tenant: str | None, backend: Backend, more: Sequence[metrics.Sample] = ()
    ) -> bytes:
        """The figures of this tenant's part of the store (None: of all of it), and more samples."""
        if tenant not in self._under_way:
            loop = asyncio.get_running_loop()
            work = loop.run_in_executor(self._thread, _text, backend, more)
            work.add_done_callback(lambda _: self._under_way.pop(tenant))
            self._under_way[tenant] = work
        return await asyncio.shield(self._under_way[tenant])

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _text(backend: Backend, more: Sequence[metrics.Sample]) -> bytes:
    return metrics.text([*metrics.scrape(backend), *more]).encode()
