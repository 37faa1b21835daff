"""The headroom policy: workers for all that waits and runs, and some per cent more:
ceil((waiting + running) * (1 + headroom_percent / 100)).
"""

from __future__ import annotations

from sprat.core import fields
from sprat.core.model import Decision, PoolSettings, Snapshot
from sprat.core.record import Record
from sprat.scaling import sizing

NAME = "headroom"


class Options(Record):
    headroom_percent: float = 20.0
    scale_down_delay_seconds: float = 300.0  # between two changes down


FIELDS = {
    "headroom_percent": fields.number(0, 10_000).means("above what waits and runs"),
    "scale_down_delay_seconds": fields.seconds().means("between two changes down"),
}


def with_headroom(demand: int, percent: float) -> int:
    return sizing.ceil(demand * (100.0 + percent) / 100.0)


def decide(seen: Snapshot, settings: PoolSettings) -> Decision:
    own = Options(**settings.policy_options)
    waiting, running = seen.claimable, seen.counts.claimed
    wanted = with_headroom(waiting + running, own.headroom_percent)
    return sizing.decision(
        NAME,
        seen,
        settings,
        sizing.Want(
            workers=wanted,
            reason=(
                f"{waiting} waiting, {running} running, "
                f"{own.headroom_percent:g} % headroom: {wanted} wanted"
            ),
            terms={"headroom_percent": own.headroom_percent},
            down_delay_seconds=own.scale_down_delay_seconds,
        ),
    )
