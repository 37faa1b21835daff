"""Heartbeats beside a job that runs in the worker itself, from a thread.

The thread also stops the job when its claim is lost or its time is over, by raising Stopped in the
main thread. It cannot do so, nor send heartbeats, while the job holds the interpreter in one long
call into C: such jobs belong into a child (isolation: process). It is a bare thread: to import
`threading` for it would be a tenth of Python's own start.
"""

from __future__ import annotations

import _thread
import os

from sprat.core.errors import SpratError
from sprat.core.retry_rules import stopped_after
from sprat.core.runtime import runtime
from sprat.worker.job import Stopped

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # without its enums, which are a tenth of Python's own start

ASK_AGAIN_SECONDS = 0.1  # the job may just be beginning, and not to be stopped yet


class HeartbeatThread:
    """Beats from `start` to `end`, beside one job after the other. In a thread other than the
    main one it only beats: it stops nothing."""

    def __init__(
        self,
        beat: Callable[[], bool],
        *,
        pause: Callable[[], float],
        timeout: float | None = None,
    ) -> None:
        """`pause` says how long it is until the next beat, each time."""
        self._beat = beat
        self._pause = pause
        self._timeout = timeout
        self._over = False
        self._quiet = _thread.allocate_lock()  # let go to wake it: over, or to be hurried
        self._quiet.acquire()
        self._alive = _thread.allocate_lock()  # held by the thread
        self._next_at = 0.0  # when it beats next
        self._job = 0  # the number of the running one; the next one has another
        self._end: float | None = None  # of the running job's time
        self._may_stop = False  # whether the main thread is running it
        self._doomed = 0  # the number of the job that has to stop, and why
        self._why = ""
        self.stopped = False

    def start(self) -> None:
        try:
            self._before = signal.signal(signal.SIGUSR2, self._stop_doomed)
            self._is_main = True
        except ValueError:  # only the main thread may do that
            self._is_main = False
        self._alive.acquire()
        _thread.start_new_thread(self._run, ())

    def begin(self) -> None:
        """A job begins: from here on Stopped may be raised."""
        self._job += 1
        self.stopped = False
        if self._timeout is not None:
            self._end = runtime.monotonic() + self._timeout
        self._may_stop = self._is_main

    def finish(self) -> None:
        """It is over. Call it again where Stopped is caught: it may have been raised in here."""
        self._may_stop = False
        self._end = None

    def hurry(self, seconds: float) -> None:
        """Let the pause be no longer than this: what it was for has changed."""
        if self._next_at - runtime.monotonic() > seconds:
            self._stir()

    def end(self) -> None:
        """Beat no more."""
        self._over = True
        self._stir()
        with self._alive:
            pass
        if self._is_main:
            signal.signal(signal.SIGUSR2, self._before)

    def stop_now(self) -> None:
        """Stop the job that the main thread is running, if it is running one."""
        if self._may_stop:
            self._may_stop = False  # once
            self.stopped = True
            _kill_offspring()
            raise Stopped(self._why if self._doomed == self._job else "")

    def _stop_doomed(self, *_: object) -> None:
        """The same, unless that job is over and another one runs by now."""
        if self._doomed == self._job:
            self.stop_now()

    def _stir(self) -> None:
        try:
            self._quiet.release()
        except RuntimeError:
            pass  # it was done already

    def _run(self) -> None:
        try:
            self._beat_on()
        finally:
            self._alive.release()

    def _beat_on(self) -> None:
        while not self._over:
            if self._slept(max(0.0, self._until_next())):
                job, end = self._job, self._end
                if end is not None and runtime.monotonic() >= end:
                    self._stop(job, stopped_after(self._timeout or 0.0))
                elif not self._is_ours():
                    self._stop(job, "")

    def _is_ours(self) -> bool:
        """Beat. After a final error of the store nothing of the job can be kept; the main thread
        meets the same error at its next heartbeat, and leaves."""
        try:
            return self._beat()
        except SpratError:
            return False

    def _slept(self, seconds: float) -> bool:
        """Whether the pause was over before it was stirred."""
        self._next_at = runtime.monotonic() + seconds
        stirred = self._quiet.acquire(timeout=seconds)
        return not stirred and not self._over

    def _until_next(self) -> float:
        """A job that has not begun yet cannot run out of time before its time has passed."""
        if self._timeout is None:
            return self._pause()
        end = self._end
        return min(self._pause(), self._timeout if end is None else end - runtime.monotonic())

    def _stop(self, job: int, why: str) -> None:
        self._why = why
        self._doomed = job
        self.stopped = True
        while self._may_stop and self._job == job:
            os.kill(os.getpid(), signal.SIGUSR2)
            self._slept(ASK_AGAIN_SECONDS)
            if self._over:
                return


def _kill_offspring() -> None:
    """Kill what the job started, where the system tells (Linux). All are looked up before the
    first is killed: the children of a dead process are no longer known as such."""
    family = [os.getpid()]
    for pid in family:
        family += _children(pid)
    for pid in family[1:]:
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass


def _children(pid: int) -> list[int]:
    found: list[int] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
    except OSError:
        pass
    return found
