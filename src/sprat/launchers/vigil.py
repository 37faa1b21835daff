"""A vigil: of all nests of a pool on this machine, one sleeps until a delayed item is due.

The others leave, and ring: perhaps something is due by then that the sleeper does not know of. The
lock goes with its process.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOOK_SECONDS = 0.1  # a ring is heard within this


class Vigil:
    def __init__(self, url: str, pool: str) -> None:
        self._name = f"{url} {pool}"

    def keep(self, seconds: float, is_over: Callable[[], bool]) -> bool:
        """Sleep this long, or until somebody rings. False when another nest keeps the vigil."""
        import fcntl

        path = self._path()
        try:
            bell = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:  # no room, or a stranger's file: several nests may sleep, each wakes
            return _sleep(seconds, is_over, lambda: False)
        try:
            silent = os.fstat(bell).st_mtime_ns  # before the lock: who finds it taken rings later
            try:
                fcntl.flock(bell, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.utime(bell, ns=(0, time.time_ns()))
                return False
            try:
                return _sleep(seconds, is_over, lambda: os.fstat(bell).st_mtime_ns != silent)
            finally:
                _remove(path)
        finally:
            os.close(bell)

    def _path(self) -> str:
        import hashlib
        import tempfile

        name = hashlib.sha256(self._name.encode()).hexdigest()[:24]
        return os.path.join(tempfile.gettempdir(), f"sprat-{os.getuid()}-{name}.wait")


def _sleep(seconds: float, is_over: Callable[[], bool], rings: Callable[[], bool]) -> bool:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0 and not is_over() and not rings():
        time.sleep(min(LOOK_SECONDS, left))
    return True


def _remove(path: str) -> None:
    """While the lock is held. Who opened the file before and locks it after has a lock that
    nobody else finds: then two nests sleep, and both wake, which is harmless."""
    try:
        os.unlink(path)
    except OSError:
        pass
