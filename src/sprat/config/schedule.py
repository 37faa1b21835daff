"""A cron schedule in a time zone: five fields or a word like @hourly, as Debian's cron reads them.

When clocks change: a schedule with a fixed minute and hour runs once a day, at the first moment
after a time that is skipped, and not again at one that comes twice. One that begins with a star
follows the clock on the wall, hour by hour.
"""

from __future__ import annotations

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

UTC = "UTC"
WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
FIELDS = ("minute", "hour", "day of month", "month", "day of week")
RANGES = ("0-59", "0-23", "1-31", "1-12 or JAN-DEC", "0-7 or SUN-SAT")
LETTERS = frozenset("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ*,-/")  # cronsim knows more; cron does not


class Times(Record):
    """What a schedule says, spelled out; None where every value fits. Days count if either fits
    (`any_day`), as soon as both are restricted."""

    minutes: tuple[int, ...] | None
    hours: tuple[int, ...] | None
    days: tuple[int, ...] | None
    months: tuple[int, ...] | None
    weekdays: tuple[int, ...] | None  # Sunday is 0
    any_day: bool


def fields(schedule: object) -> str:
    """The five fields of a schedule that can be understood, or InvalidInput."""
    if not isinstance(schedule, str):
        raise InvalidInput(f"schedule must be a text such as '*/5 * * * *', not {schedule!r}")
    text = " ".join(schedule.split())
    if text.startswith("@"):
        if text.lower() not in WORDS:
            raise InvalidInput(f"unknown schedule {text!r}: use {', '.join(WORDS)} or five fields")
        return WORDS[text.lower()]
    parts = text.upper().split(" ")
    if len(parts) != len(FIELDS):
        raise InvalidInput(
            f"schedule {text!r} has {len(parts) if text else 0} fields: it needs five, "
            f"{', '.join(FIELDS)}"
        )
    for place, part in enumerate(parts):
        _check_field(text, place, part)
    _check_it_ever_comes(text, parts)
    return " ".join(parts)


def zone(name: object) -> str:
    """A time zone that is known here, or InvalidInput."""
    if not isinstance(name, str) or not name:
        raise InvalidInput(f"timezone must be a name such as Europe/Berlin, not {name!r}")
    tzinfo(name)
    return name


def latest(schedule: str, timezone: str, now: float) -> float | None:
    """The last time at or before `now` at which the schedule was due."""
    found = next(_walk(schedule, timezone, int(now) + 1, reverse=True), None)
    if found is None:
        return None
    for due in _walk(schedule, timezone, int(found), reverse=False):
        if due > now:
            break
        found = max(found, due)  # backwards, an hour that comes twice hides what was due in it
    return found


def following(schedule: str, timezone: str, now: float) -> float | None:
    """The first time after `now` at which the schedule will be due."""
    coming = _walk(schedule, timezone, int(now), reverse=False)
    return next((due for due in coming if due > now), None)


def times(schedule: str) -> Times:
    """The schedule for those who have notations of their own: timers, property lists."""
    from datetime import datetime

    from cronsim import CronSim

    read = CronSim(fields(schedule), datetime(2000, 1, 1))
    weekdays = {int(day) % 7 for day in read.weekdays if not isinstance(day, tuple)}
    return Times(
        minutes=_unless_all(read.minutes, 60),
        hours=_unless_all(read.hours, 24),
        days=_unless_all(read.days, 31),
        months=_unless_all(read.months, 12),
        weekdays=_unless_all(weekdays, 7),
        any_day=not read.day_and,
    )


def _unless_all(values: set[int], count: int) -> tuple[int, ...] | None:
    return None if len(values) == count else tuple(sorted(values))


def _check_field(schedule: str, place: int, part: str) -> None:
    field = " ".join(part if n == place else "*" for n in range(len(FIELDS)))
    is_plain = LETTERS.issuperset(part) and "L" not in part.replace("JUL", "")
    if is_plain and not _wrong(field):
        return
    raise InvalidInput(
        f"schedule {schedule!r}: {part!r} is no {FIELDS[place]}: use {RANGES[place]}, "
        f"with * , - and /"
    )


def _check_it_ever_comes(schedule: str, parts: list[str]) -> None:
    if _wrong(" ".join(parts)):
        raise InvalidInput(f"schedule {schedule!r} never comes: no such month has that day")


def _wrong(expression: str) -> bool:
    from datetime import datetime

    from cronsim import CronSim, CronSimError

    try:
        CronSim(expression, datetime(2000, 1, 1))
    except CronSimError:
        return True
    return False


def _walk(schedule: str, timezone: str, at: int, *, reverse: bool) -> Iterator[float]:
    from datetime import datetime

    from cronsim import CronSim

    moment = datetime.fromtimestamp(at, tzinfo(timezone))
    for found in CronSim(fields(schedule), moment, reverse=reverse):
        yield found.timestamp()


def tzinfo(name: str) -> Any:
    """The zone of this name, for `datetime`, or InvalidInput."""
    if name == UTC:
        import datetime

        return datetime.UTC
    from zoneinfo import ZoneInfo

    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise InvalidInput(
            f"there is no time zone {name!r} here: use a name such as Europe/Berlin "
            f"(`pip install tzdata` where the system brings none)"
        ) from None
