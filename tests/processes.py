"""Real processes that collide: each gets ready, and all go on at the same moment."""

from __future__ import annotations

import multiprocessing
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any

FORK = multiprocessing.get_context("fork")
PATIENCE = 60.0  # seconds until a process that does not come, or does not answer, is given up

Together = Callable[[], object]


def at_once(n: int, job: Callable[..., Any], *args: Any) -> list[Any]:
    """Run `job(place, together, *args)` in n processes and return their answers.

    Each call of `together()` in a job waits until all n have made it."""
    barrier = FORK.Barrier(n)
    running = [_start(job, place, barrier, args) for place in range(n)]
    answers = [_answer(pipe) for _, pipe in running]
    for process, _ in running:
        process.join(PATIENCE)
    failures = [trace for succeeded, trace in answers if not succeeded]
    failures.sort(key=lambda trace: "BrokenBarrierError" in trace)  # the cause comes first
    assert not failures, failures[0]
    return [answer for _, answer in answers]


def beside(job: Callable[..., Any], *args: Any) -> tuple[BaseProcess, Connection]:
    """Start `job(pipe, *args)` in a process of its own, with a pipe to talk to it."""
    ours, theirs = FORK.Pipe()
    process = FORK.Process(target=job, args=(theirs, *args), daemon=True)
    process.start()
    theirs.close()
    return process, ours


def hear(pipe: Connection) -> Any:
    """What the process at the other end says next."""
    assert pipe.poll(PATIENCE), "no answer"
    return pipe.recv()


def _start(
    job: Callable[..., Any], place: int, barrier: Any, args: tuple[Any, ...]
) -> tuple[BaseProcess, Connection]:
    return beside(_run, job, place, barrier, args)


def _run(
    pipe: Connection, job: Callable[..., Any], place: int, barrier: Any, args: tuple[Any, ...]
) -> None:
    try:
        answer = True, job(place, lambda: barrier.wait(PATIENCE), *args)
    except BaseException:  # noqa: BLE001 - it is told to the parent, which fails
        barrier.abort()
        answer = False, traceback.format_exc()
    pipe.send(answer)
    pipe.close()


def _answer(pipe: Connection) -> tuple[bool, Any]:
    try:
        answer: tuple[bool, Any] = hear(pipe)
    except (EOFError, AssertionError) as error:
        return False, f"a process died or hangs: {error!r}"
    finally:
        pipe.close()
    return answer
