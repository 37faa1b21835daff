"""`sprat reap`: one pass over stale workers."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, seconds
from sprat.cli.main import DONE
from sprat.cli.output import document, number
from sprat.cli.target import known_pool, open_existing, start_fleet
from sprat.fleet import reaper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> CommandParser:
    made = CommandParser(prog="sprat reap")
    made.add_argument("pool", metavar="POOL", nargs="?", help="only this one; else all")
    made.add_argument(
        "--threshold",
        type=seconds,
        metavar="SECONDS",
        help="stale is who sent no heartbeat for so long; else whose lease has ended",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        pool = None if asked.pool is None else known_pool(store, asked.pool)
        reaped = reaper.reap(store, pool, threshold_seconds=asked.threshold)
        for name in store.pools() if pool is None else [pool]:
            start_fleet(store, name)
    if asked.json:
        document(reaped)
        return DONE
    print(
        f"{number(len(reaped.workers), 'worker')} lost, {number(reaped.released, 'job')} freed, "
        f"{reaped.poisoned} poisoned, {number(len(reaped.expired), 'launch', 'launches')} expired"
    )
    return DONE
