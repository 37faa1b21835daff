"""One worker of an in-process pool as a process of its own, seen from the thread that feeds it.

The thread writes a pickled call into a pipe and reads back how it ended. A process that dies in the
middle of a job closes its end, which is how the thread learns of it at once; the next call starts a
new one. When the program itself ends, the process reads the end of its pipe and leaves.
"""

from __future__ import annotations

import multiprocessing
import pickle
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any

from sprat.core.coroutines import outcome
from sprat.core.errors import InvalidInput, SpratError

PATIENCE_SECONDS = 5.0  # for an idle process to leave before it is killed
READY = b"ready"
UNREADY = (  # each new process imports the program's main module
    "before it was ready: does the program make its pool under `if __name__ == '__main__':`?"
)


class WorkerDied(SpratError):
    """The process of a worker ended in the middle of a job."""


class WorkerProcess:
    """Runs one call at a time. Made, used and closed by one thread."""

    def __init__(self) -> None:
        self._process: Any = None
        self._pipe: Connection[bytes, bytes] | None = None

    def run(self, call: bytes) -> Any:
        """What the call returned; what it raised is raised, WorkerDied if it took its process."""
        pipe = self._pipe or self._start()
        reply = self._heard(pipe, "in the middle of the job", call)
        is_good, value = pickle.loads(reply)
        if is_good:
            return value
        raise value

    def _heard(self, pipe: Connection[bytes, bytes], when: str, call: bytes = b"") -> bytes:
        """The next words of the process, to a call or by itself."""
        try:
            if call:
                pipe.send_bytes(call)
            return pipe.recv_bytes()
        except (EOFError, OSError):
            raise WorkerDied(f"the worker's process {self.close()} {when}") from None

    def close(self) -> str:
        """End the process; how it ended."""
        if self._pipe is None:
            return "was never started"
        self._pipe.close()
        self._pipe = None
        self._process.join(PATIENCE_SECONDS)
        if self._process.exitcode is None:
            self._process.kill()
            self._process.join()
        code = self._process.exitcode
        self._process.close()
        return f"was ended by signal {-code}" if code < 0 else f"exited with code {code}"

    def _start(self) -> Connection[bytes, bytes]:
        context = _context()
        ours, theirs = context.Pipe()
        process = context.Process(target=_serve, args=(theirs,), daemon=True)  # type: ignore[attr-defined]  # every context has one
        process.start()
        theirs.close()  # or its end would not be seen
        self._process, self._pipe = process, ours
        self._heard(ours, UNREADY)
        return ours


def packed(task: object, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bytes:
    """A call that can be sent to a process, or InvalidInput."""
    try:
        return pickle.dumps((task, tuple(args), dict(kwargs)))
    except Exception as error:
        raise InvalidInput(
            f"the job cannot be sent to a process ({error}): "
            f"use a function of a module and arguments that pickle takes"
        ) from error


def _context() -> BaseContext:
    """Not fork: this program has threads."""
    methods = multiprocessing.get_all_start_methods()
    return multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")


def _serve(pipe: Connection[bytes, bytes]) -> None:
    """In the process: run what comes until the pipe ends."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the program, which drains
    pipe.send_bytes(READY)
    while True:
        try:
            call = pipe.recv_bytes()
        except (EOFError, OSError):
            return
        pipe.send_bytes(_answer(call))


def _answer(call: bytes) -> bytes:
    try:
        task, args, kwargs = pickle.loads(call)
        return pickle.dumps((True, outcome(task(*args, **kwargs))))
    except BaseException as error:  # noqa: BLE001  (whatever a job raises is its result)
        return _refusal(error)


def _refusal(error: BaseException) -> bytes:
    """The error, if it survives the way; some exceptions can be pickled but not read again."""
    try:
        reply = pickle.dumps((False, error))
        pickle.loads(reply)
        return reply
    except Exception:  # noqa: BLE001  (an exception class of the user may fail in any way)
        return pickle.dumps((False, SpratError(f"{type(error).__name__}: {error}")))
