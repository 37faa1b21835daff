"""Workers as processes of this machine: there is nothing to choose."""

from __future__ import annotations

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable


class Options(Record):
    pass


CHECKS: dict[str, Callable[[object, str], object]] = {}
