"""Workers as processes of this machine: there is nothing to choose."""

from __future__ import annotations

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.fields import Field


class Options(Record):
    pass


FIELDS: dict[str, Field] = {}
