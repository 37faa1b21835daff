"""The step policy: a table from how many items wait to how many workers there are.

    steps: {"0": 0, "1-5": 1, "6-20": 3, "21+": 10}

The ranges begin at 0, leave no gap and do not overlap; more waiting items never mean fewer workers.
Beyond the last range its number goes on.
"""

from __future__ import annotations

from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import sizing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Table = list[tuple[int, int]]  # (at least so many waiting, so many workers), ascending

NAME = "step"
EXAMPLE = '{"0-5": 1, "6-20": 3, "21+": 10}'


class Options(Record):
    steps: Mapping[str, int] = {"0": 0, "1-5": 1, "6-20": 3, "21-100": 6, "101+": 10}
    scale_down_delay_seconds: float = 300.0  # between two changes down


def table(steps: object, name: str = "steps") -> Table:
    """The steps in order, or InvalidInput."""
    if not isinstance(steps, dict) or not steps:
        raise InvalidInput(f"{name} must be a table such as {EXAMPLE}, not {steps!r}")
    rows: Table = []
    next_start: int | None = 0
    for start, end, workers in sorted(_row(key, value, name) for key, value in steps.items()):
        if next_start is None or start != next_start:
            after = "an open end" if next_start is None else str(next_start)
            raise InvalidInput(f"{name}: a range begins at {start}, expected {after}")
        if rows and workers < rows[-1][1]:
            raise InvalidInput(
                f"{name}: {workers} workers from {start} waiting items on, fewer than before"
            )
        rows.append((start, workers))
        next_start = None if end < 0 else end + 1
    return rows


def _row(key: object, workers: object, name: str) -> tuple[int, int, int]:
    """One range as (first, last or -1 for open, workers)."""
    text = str(key)
    first, dash, last = text.removesuffix("+").partition("-")
    numbers = (first, last) if dash else (first,)
    if not all(n.isascii() and n.isdecimal() and len(n) <= 12 for n in numbers):
        raise InvalidInput(f"{name}: {text!r} is not a range such as 0-5, 6 or 21+")
    count: int = fields.workers()(workers, f"{name}: the workers for {text}")
    start = int(first)
    end = -1 if text.endswith("+") else int(last) if dash else start
    if (dash and end < start) or (dash and text.endswith("+")):
        raise InvalidInput(f"{name}: {text!r} is not a range such as 0-5, 6 or 21+")
    return start, end, count


FIELDS = {
    "steps": fields.custom(
        f"a table such as {EXAMPLE}",
        table,
        type="object",
        minProperties=1,
        additionalProperties=fields.workers().schema,
    ).means("ranges of waiting items from 0 on, without a gap"),
    "scale_down_delay_seconds": fields.seconds().means("between two changes down"),
}


def workers_for(waiting: int, rows: Table) -> int:
    return [workers for start, workers in rows if start <= waiting][-1]


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    waiting, busy = seen.claimable, sizing.busy(seen)
    wanted = workers_for(waiting, table(own.steps))
    return sizing.decision(
        NAME,
        seen,
        settings,
        sizing.Want(
            workers=wanted,
            keep=busy + min(wanted, waiting),
            reason=f"{waiting} waiting: the step of {wanted}, {busy} busy",
            down_delay_seconds=own.scale_down_delay_seconds,
        ),
    )
