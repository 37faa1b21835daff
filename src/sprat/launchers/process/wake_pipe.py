"""A wake-up pipe per pool and machine: how a push finds out whether a process attends to the pool.

It is a named pipe. Each fork server of the pool holds the reading end, from before it is started
until it ends; the kernel closes it. A push that cannot be sure that its job is taken writes one
byte. If no process reads, the write fails, and the push starts a fork server; otherwise a fork
server looks at the pool within a second. Nothing is stored in the pipe. The file stays.
"""

from __future__ import annotations

import os
import stat

from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

DESCRIPTOR = "SPRAT_WAKE_PIPE"  # the variable with the descriptor that a fork server inherits
WAKE_UP = b"!"
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
LOOK_SECONDS = 0.5  # a signal is noticed within this


def path_of(url: str, pool: str) -> str:
    from _blake2 import blake2b  # without hashlib, which is a third of Python's own start

    name = blake2b(f"{url} {pool}".encode(), digest_size=12).hexdigest()
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"sprat-{os.getuid()}-{name}.wake")


def wake(url: str, pool: str) -> bool:
    """Ask the pool's fork servers on this machine to look at it; False when there is none. The
    writing end is not kept: the file may be another the next time, and other threads write too."""
    try:
        pipe = os.open(path_of(url, pool), os.O_WRONLY | FLAGS)
    except OSError:
        return False
    try:
        if not _is_ours(pipe):
            return False
        os.write(pipe, WAKE_UP)
    except BlockingIOError:
        return True  # it is full of wake-ups
    except OSError:
        return False
    finally:
        os.close(pipe)
    return True


def open_reading(url: str, pool: str) -> int:
    """The reading end, for a fork server; -1 where there can be none: then every push starts a fork
    server."""
    path = path_of(url, pool)
    try:
        try:
            os.mkfifo(path, 0o600)
        except FileExistsError:
            pass
        # For writing too: so there is no end of file when the last push closes its end.
        pipe = os.open(path, os.O_RDWR | FLAGS)
    except OSError:
        return -1
    if _is_ours(pipe):
        return pipe
    os.close(pipe)
    return -1


def remove(url: str, pool: str) -> None:
    """For a store that is about to be deleted, when no process uses it any more."""
    try:
        os.unlink(path_of(url, pool))
    except OSError:
        pass


def _is_ours(pipe: int) -> bool:
    """Whether it is a pipe of this user: other users may write to the directory."""
    status = os.fstat(pipe)
    return stat.S_ISFIFO(status.st_mode) and status.st_uid == os.getuid()


class WakePipe:
    """The reading end in a fork server."""

    def __init__(self, url: str, pool: str) -> None:
        self._address = (url, pool)
        self.descriptor = -1
        inherited = os.environ.pop(DESCRIPTOR, "")
        if inherited:
            self.descriptor = int(inherited)
            os.set_inheritable(self.descriptor, False)
        else:
            self.open()

    def open(self) -> None:
        if self.descriptor < 0:
            self.descriptor = open_reading(*self._address)

    def close(self) -> None:
        """From here on a push starts a fork server. Every child closes it too: it does not attend
        to the pool."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def is_first(self) -> bool:
        """Whether no other fork server of the pool waits on this machine; from here on this one
        does."""
        import fcntl

        if self.descriptor < 0:
            return True
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def clear(self) -> bool:
        """Remove the wake-ups from the pipe; whether there were any."""
        if self.descriptor < 0:
            return False
        woken = False
        try:
            while os.read(self.descriptor, 1 << 16):
                woken = True
        except OSError:
            pass
        return woken

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """Sleep this long, or until a wake-up: whether there was one."""
        import select

        end = runtime.monotonic() + seconds
        poll = select.poll()
        if self.descriptor >= 0:
            poll.register(self.descriptor, select.POLLIN)
        while (left := end - runtime.monotonic()) > 0 and not is_over():
            if poll.poll(min(left, LOOK_SECONDS) * 1000):
                return True
        return False
