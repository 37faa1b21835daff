"""Time, sleep, randomness and new processes: everything that makes one run differ from another.

The store, the workers, the scaling pass and the launchers reach them through the one object
`runtime`. A simulation replaces its attributes, and with them the clock, the sleeps, the random
bytes and the starts of processes of the whole program.
"""

from __future__ import annotations

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Runtime:
    """What the operating system gives; each attribute can be replaced.

    runtime.sleep = simulated_clock.sleep
    """

    __slots__ = ("fork", "monotonic", "random_bytes", "sleep", "spawn", "time")

    def __init__(self) -> None:
        self.monotonic: Callable[[], float] = time.monotonic
        self.time: Callable[[], float] = time.time
        self.sleep: Callable[[float], None] = time.sleep
        self.random_bytes: Callable[[int], bytes] = os.urandom
        self.fork: Callable[[], int] = os.fork
        self.spawn: Callable[..., int] = os.posix_spawn


runtime = Runtime()
