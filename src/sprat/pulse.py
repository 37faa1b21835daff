"""Heartbeats beside a job that runs in the worker itself, from a thread.

The thread also stops the job when its claim is lost or its time is over, by raising Stopped in the
main thread. It cannot do so, nor send heartbeats, while the job holds the interpreter in one long
call into C: such jobs belong into a child (isolation: process).
"""

from __future__ import annotations

import os
import signal
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Stopped(BaseException):
    """Raised in the job's thread; not an Exception, so that jobs do not catch it by accident."""


class Pulse:
    """Beats while its block runs. In a thread other than the main one it only beats."""

    _alarm: Pulse | None = None  # the one whose job the main thread is running

    def __init__(
        self, beat: Callable[[], bool], *, every: float, timeout: float | None = None
    ) -> None:
        self._beat = beat
        self._every = every
        self._timeout = timeout
        self._over = threading.Event()
        self._why = ""
        self.stopped = False

    def __enter__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        if self._is_main:
            Pulse._alarm = self
            self._before = signal.signal(signal.SIGUSR2, _raise_stopped)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        if self._is_main:
            Pulse._alarm = None
        self._over.set()
        self._thread.join()
        if self._is_main:
            signal.signal(signal.SIGUSR2, self._before)

    @classmethod
    def stop_now(cls) -> None:
        """Stop the job that the main thread is running, if it is running one."""
        if cls._alarm is not None:
            cls._alarm.stopped = True
            raise Stopped(cls._alarm._why)

    def _run(self) -> None:
        end = None if self._timeout is None else time.monotonic() + self._timeout
        while True:
            pause = self._every if end is None else min(self._every, end - time.monotonic())
            if self._over.wait(max(0.0, pause)):
                return None
            if end is not None and time.monotonic() >= end:
                self._why = f"stopped after its {self._timeout:g} seconds were over"
                return self._stop()
            if not self._beat():
                return self._stop()

    def _stop(self) -> None:
        self.stopped = True
        if self._is_main:
            os.kill(os.getpid(), signal.SIGUSR2)


def _raise_stopped(*_: object) -> None:
    Pulse.stop_now()
