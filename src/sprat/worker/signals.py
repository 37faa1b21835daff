"""Being told to leave: SIGTERM and SIGINT, as calls."""

from __future__ import annotations

from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
    from typing import Any
else:
    import _signal as signal  # without its enums, which are a tenth of Python's own start

STOP_SIGNALS = (signal.SIGTERM, signal.SIGINT)
ONE_CAUSE_SECONDS = 0.2  # signals this close (to a whole group, and passed on) are one


class Signals:
    """SIGTERM and SIGINT as calls, while it lasts; elsewhere than in the main thread, nothing.
    Whoever forked this process may have held them back until now."""

    def __init__(self, call: Callable[[], None]) -> None:
        self._call = call
        self._before: dict[int, Any] = {}
        self._told_at = -ONE_CAUSE_SECONDS

    def __enter__(self) -> None:
        try:
            for number in STOP_SIGNALS:
                self._before[number] = signal.signal(number, lambda *_: self._told())
            signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP_SIGNALS)
        except ValueError:
            pass  # not the main thread

    def _told(self) -> None:
        now = runtime.monotonic()
        if now - self._told_at >= ONE_CAUSE_SECONDS:
            self._told_at = now
            self._call()

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
