"""`sprat pause`: no job of the pool is handed out until it is resumed."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, seconds
from sprat.cli.main import DONE
from sprat.cli.output import document, duration
from sprat.cli.target import known_pool, open_existing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> CommandParser:
    made = CommandParser(prog="sprat pause")
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--for", dest="seconds", type=seconds, metavar="SECONDS", help="else until resumed"
    )
    made.add_argument(
        "--reason", metavar="TEXT", help="shown by `sprat status` and `sprat explain`"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        pool = store.pool(known_pool(store, asked.pool))
        pool.pause(asked.seconds, reason=asked.reason)
        running = pool.counts().claimed
    if asked.json:
        document({"pool": pool.name, "paused": True, "seconds": asked.seconds, "running": running})
        return DONE
    end = "until `sprat resume`" if asked.seconds is None else f"for {duration(asked.seconds)}"
    print(f"{pool.name} is paused {end}; {running} running jobs go on")
    return DONE
