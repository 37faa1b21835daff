"""Wakes idle workers: whoever adds work touches a file, whoever waits watches it.

On Linux the kernel tells the waiter (inotify), so that waiting costs nothing and waking about a
millisecond; elsewhere the waiter looks at the file's time of change every few milliseconds. The
file holds no state: a missed ring is healed by the next look, at most a second later.
"""

from __future__ import annotations

import os
import sys

from sprat.core.runtime import runtime

LOOK_SECONDS = 0.005
_IN_ATTRIB = 0x4
_IN_NONBLOCK = 0x800
_IN_CLOEXEC = 0x80000


class WakeupFile:
    def __init__(self, path: str) -> None:
        self.path = path
        self._watch = -1
        self._inode: int | None = None
        self._seen = 0

    def ring(self) -> None:
        """Wake all who wait. Nobody ever waited here: there is no file, and nothing to do."""
        try:
            os.utime(self.path)
        except OSError:
            pass

    def listen(self) -> None:
        """From here on no ring is missed. Look for work after this, then `wait`."""
        self.descriptor()
        self.silence()

    def descriptor(self) -> int | None:
        """What becomes readable at the next ring, and stays so until `silence`; None where the
        system has no such thing."""
        if self._watch == -1 or self._inode != _inode(self.path):  # or the file was deleted
            self.close()
            self._watch = _hang_up(self.path)
            self._inode = _inode(self.path)
        return self._watch if self._watch >= 0 else None

    def wait(self, seconds: float) -> None:
        """Sleep until the bell rings or the time is up."""
        if self._watch >= 0:
            import select  # here: a worker that finds work never waits

            poll = select.poll()  # unlike select, it takes descriptors of any number
            poll.register(self._watch, select.POLLIN)
            poll.poll(seconds * 1000)
            return
        end = runtime.monotonic() + seconds
        while self._changed_at() == self._seen and runtime.monotonic() < end:
            runtime.sleep(LOOK_SECONDS)

    def close(self) -> None:
        if self._watch >= 0:
            os.close(self._watch)
        self._watch = -1

    def silence(self) -> None:
        self._seen = self._changed_at()
        if self._watch >= 0:
            try:
                while os.read(self._watch, 4096):
                    pass
            except BlockingIOError:
                pass

    def _changed_at(self) -> int:
        try:
            return os.stat(self.path).st_mtime_ns
        except OSError:
            return 0


def _inode(path: str) -> int | None:
    try:
        return os.stat(path).st_ino
    except OSError:
        return None


def _hang_up(path: str) -> int:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    except OSError:
        return -2  # a full disk: without a bell, the waiter looks once a second
    return _watch(path)


def _watch(path: str) -> int:
    """A descriptor that becomes readable when the file is touched, or -2 where there is none."""
    if not sys.platform.startswith("linux"):
        return -2
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    watch = libc.inotify_init1(_IN_NONBLOCK | _IN_CLOEXEC)
    if watch < 0:
        return -2
    if libc.inotify_add_watch(watch, os.fsencode(path), _IN_ATTRIB) < 0:
        os.close(watch)
        return -2
    return int(watch)
