"""A doorbell per pool and machine: how a push finds out whether a process looks after the pool.

It is a named pipe. Each nest of the pool holds the reading end, from before it is started until it
ends, however it ends: the kernel closes it. A push that cannot be sure that its job is taken writes
one byte. If no process reads, the write fails, and the push starts a nest; otherwise a nest looks
at the pool within a second. Nothing is stored in the pipe, and the file stays: it costs nothing.
"""

from __future__ import annotations

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

HANDED_OVER = "SPRAT_DOORBELL"  # the variable with the descriptor that a nest inherits
RING = b"!"
FLAGS = os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
LOOK_SECONDS = 0.5  # a signal is noticed within this


def path_of(url: str, pool: str) -> str:
    from _blake2 import blake2b  # without hashlib, which is a third of Python's own start

    name = blake2b(f"{url} {pool}".encode(), digest_size=12).hexdigest()
    return os.path.join(os.environ.get("TMPDIR") or "/tmp", f"sprat-{os.getuid()}-{name}.bell")


def ring(url: str, pool: str) -> bool:
    """Ask the pool's nests on this machine to look at it; False when there is none. The writing end
    is not kept: the file may be another the next time, and other threads ring too."""
    try:
        bell = os.open(path_of(url, pool), os.O_WRONLY | FLAGS)
    except OSError:
        return False
    try:
        if not _is_ours(bell):
            return False
        os.write(bell, RING)
    except BlockingIOError:
        return True  # it is full of rings
    except OSError:
        return False
    finally:
        os.close(bell)
    return True


def open_reading(url: str, pool: str) -> int:
    """The reading end, for a nest; -1 where there can be none: then every push starts a nest."""
    path = path_of(url, pool)
    try:
        try:
            os.mkfifo(path, 0o600)
        except FileExistsError:
            pass
        # For writing too: so there is no end of file when the last push closes its end.
        bell = os.open(path, os.O_RDWR | FLAGS)
    except OSError:
        return -1
    if _is_ours(bell):
        return bell
    os.close(bell)
    return -1


def remove(url: str, pool: str) -> None:
    """For a store that is about to be deleted, when no process uses it any more."""
    try:
        os.unlink(path_of(url, pool))
    except OSError:
        pass


def _is_ours(bell: int) -> bool:
    """Whether it is a pipe of this user: the directory may be everybody's."""
    about = os.fstat(bell)
    return stat.S_ISFIFO(about.st_mode) and about.st_uid == os.getuid()


class Doorbell:
    """The reading end in a nest."""

    def __init__(self, url: str, pool: str) -> None:
        self._place = (url, pool)
        self.descriptor = -1
        inherited = os.environ.pop(HANDED_OVER, "")
        if inherited:
            self.descriptor = int(inherited)
            os.set_inheritable(self.descriptor, False)
        else:
            self.open()

    def open(self) -> None:
        if self.descriptor < 0:
            self.descriptor = open_reading(*self._place)

    def close(self) -> None:
        """From here on a push starts a nest. Also in every child: it looks after nothing."""
        if self.descriptor >= 0:
            os.close(self.descriptor)
            self.descriptor = -1

    def is_first(self) -> bool:
        """Whether no other nest of the pool on this machine waits; from here on this one does."""
        import fcntl

        if self.descriptor < 0:
            return True
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def silence(self) -> bool:
        """Take the rings out; whether there were any."""
        if self.descriptor < 0:
            return False
        rang = False
        try:
            while os.read(self.descriptor, 1 << 16):
                rang = True
        except OSError:
            pass
        return rang

    def wait(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """Sleep this long, or until it rings: whether it rang."""
        import select
        import time

        end = time.monotonic() + seconds
        poll = select.poll()
        if self.descriptor >= 0:
            poll.register(self.descriptor, select.POLLIN)
        while (left := end - time.monotonic()) > 0 and not is_over():
            if poll.poll(min(left, LOOK_SECONDS) * 1000):
                return True
        return False
