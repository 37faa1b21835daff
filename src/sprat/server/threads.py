"""The threads that talk to the store: a fixed number, so that a flood of requests queues up.

Tenants that wait for a thread get one in turn, and none has more than half of them: whatever one
tenant asks for, the requests of others go on. The operator takes its turn too, without that limit.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from sprat.server import quotas

Party = str | None  # a tenant; None: the operator, and the server itself
STRANGERS = ""  # requests whose key is not known yet share the part of one tenant


class Threads:
    def __init__(self, number: int) -> None:
        self._pool = ThreadPoolExecutor(number, thread_name_prefix="sprat-store")
        self._free = number
        self._most = quotas.share(number)
        self._busy: dict[Party, int] = {}
        self._waiting: dict[Party, deque[asyncio.Future[None]]] = {}  # the next turn first

    async def run(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """For the operator, or the server itself."""
        return await self.run_for(None, step, *arguments, **options)

    async def run_for(
        self, party: Party, step: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        if self._free and party not in self._waiting and self._may_have_one(party):
            self._take(party)
        else:
            await self._turn(party)
        call = partial(step, *arguments, **options)
        work = asyncio.get_running_loop().run_in_executor(self._pool, call)
        work.add_done_callback(lambda _: self._give_back(party))
        return await asyncio.shield(work)  # a request that is given up still has its thread

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)

    # -- turns; all of it on the event loop ---------------------------------------------------

    async def _turn(self, party: Party) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(party, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back(party)
            raise

    def _may_have_one(self, party: Party) -> bool:
        return party is None or self._busy.get(party, 0) < self._most

    def _take(self, party: Party) -> None:
        self._free -= 1
        self._busy[party] = self._busy.get(party, 0) + 1

    def _give_back(self, party: Party) -> None:
        self._free += 1
        self._busy[party] -= 1
        if not self._busy[party]:
            del self._busy[party]
        while self._free and (turn := self._next()) is not None:
            if not turn.done():
                turn.set_result(None)

    def _next(self) -> asyncio.Future[None] | None:
        """Whose turn it is; its party goes to the end of the line."""
        for party in self._waiting:
            if self._may_have_one(party):
                break
        else:
            return None
        queue = self._waiting.pop(party)
        turn = queue.popleft()
        if queue:
            self._waiting[party] = queue
        if not turn.done():
            self._take(party)
        return turn
