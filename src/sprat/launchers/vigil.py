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

        bell = os.open(self._path(), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            silent = os.fstat(bell).st_mtime_ns  # before the lock: who finds it taken rings later
            try:
                fcntl.flock(bell, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.utime(bell, ns=(0, time.time_ns()))
                return False
            end = time.monotonic() + seconds
            while (left := end - time.monotonic()) > 0 and not is_over():
                if os.fstat(bell).st_mtime_ns != silent:
                    break
                time.sleep(min(LOOK_SECONDS, left))
            return True
        finally:
            os.close(bell)

    def _path(self) -> str:
        import hashlib
        import tempfile

        name = hashlib.sha256(self._name.encode()).hexdigest()[:24]
        return os.path.join(tempfile.gettempdir(), f"sprat-{os.getuid()}-{name}.wait")
