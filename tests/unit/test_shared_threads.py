"""A server's threads: one tenant has at most half of them, and waiting tenants take turns."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable

from sprat.server.threads import Threads


class Gate:
    """Steps that stay in their thread until the gate opens, and what they were called."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.opens = threading.Event()

    def step(self, name: str) -> str:
        self.begun.append(name)
        assert self.opens.wait(30)
        return name


async def until(happened: Callable[[], bool]) -> None:
    async with asyncio.timeout(30):
        while not happened():
            await asyncio.sleep(0.001)


async def _one_tenant_and_others() -> None:
    threads, gate = Threads(4), Gate()
    try:
        flood = [asyncio.ensure_future(threads.run_for("acme", gate.step, "a")) for _ in range(9)]
        await until(lambda: len(gate.begun) == 2)
        assert await threads.run_for("umbrella", str, 1) == "1"
        assert await threads.run(str, 2) == "2", "the operator's"
        assert gate.begun == ["a", "a"]
        gate.opens.set()
        assert await asyncio.gather(*flood) == ["a"] * 9
    finally:
        gate.opens.set()
        threads.close()


def test_one_tenant_has_at_most_half_of_the_threads() -> None:
    asyncio.run(_one_tenant_and_others())


async def _turns() -> None:
    threads, gate, last = Threads(2), Gate(), Gate()
    order: list[str] = []
    try:
        other = asyncio.ensure_future(threads.run(last.step, "the other thread"))
        held = asyncio.ensure_future(threads.run_for("a", gate.step, "a"))
        await until(lambda: len(gate.begun) + len(last.begun) == 2)
        parties = ["a", "a", "a", "b", "c", None]
        rest = [asyncio.ensure_future(threads.run_for(p, order.append, p or "-")) for p in parties]
        await asyncio.sleep(0)  # now all of them wait
        gate.opens.set()
        await asyncio.gather(held, *rest)
        last.opens.set()
        await other
    finally:
        gate.opens.set()
        last.opens.set()
        threads.close()
    assert order == ["a", "b", "c", "-", "a", "a"]


def test_tenants_that_wait_take_turns() -> None:
    asyncio.run(_turns())


async def _given_up() -> None:
    threads, gate = Threads(2), Gate()
    try:
        held = asyncio.ensure_future(threads.run_for("a", gate.step, "first"))
        await until(lambda: gate.begun == ["first"])
        waiting = asyncio.ensure_future(threads.run_for("a", gate.step, "never"))
        await asyncio.sleep(0)
        waiting.cancel()
        held.cancel()
        await asyncio.gather(waiting, held, return_exceptions=True)
        after = asyncio.ensure_future(threads.run_for("a", gate.step, "after"))
        await asyncio.sleep(0.02)
        assert gate.begun == ["first"], "its thread is still taken"
        gate.opens.set()
        assert await after == "after"
        assert gate.begun == ["first", "after"]
    finally:
        gate.opens.set()
        threads.close()


def test_a_request_that_is_given_up_leaves_the_count_right() -> None:
    asyncio.run(_given_up())
