"""`sprat resume`: a paused pool goes on."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document
from sprat.cli.target import known_pool, open_existing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> CommandParser:
    made = CommandParser(prog="sprat resume")
    made.add_argument("pool", metavar="POOL")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        pool = store.pool(known_pool(store, asked.pool))
        pool.resume()
    if asked.json:
        document({"pool": pool.name, "paused": False})
    else:
        print(f"{pool.name} goes on")
    return DONE
