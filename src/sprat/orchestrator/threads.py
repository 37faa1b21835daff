"""The threads that talk to the store: a fixed number, so that a flood of requests queues up."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any


class Threads:
    def __init__(self, number: int) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="sprat-store")

    async def run(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        call = partial(step, *arguments, **options)
        return await asyncio.get_running_loop().run_in_executor(self._pool, call)

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
