"""Sleeping until a child has ended or a wake-up has come, in a process with one thread."""

from __future__ import annotations

import os
import select
import signal


class ChildExits:
    """Every SIGCHLD writes a byte into a pipe, which can be waited for with other descriptors."""

    def __init__(self) -> None:
        self._read, self._write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # the default would write nothing
        signal.set_wakeup_fd(self._write, warn_on_full_buffer=False)

    def wait(self, seconds: float, also: int = -1) -> None:
        """Sleep this long, until a signal came, or until `also` is readable."""
        poll = select.poll()
        for descriptor in (self._read, also):
            if descriptor >= 0:
                poll.register(descriptor, select.POLLIN)
        poll.poll(seconds * 1000)
        try:
            os.read(self._read, 1 << 12)
        except BlockingIOError:
            pass

    def close(self) -> None:
        """In a child: its signals are its own."""
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.close(self._read)
        os.close(self._write)
