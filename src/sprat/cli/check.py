"""`sprat check`: one scaling pass over a pool."""

from __future__ import annotations

import os

from sprat import checker, config, settings
from sprat.cli import DONE
from sprat.cli.arguments import Parser, whole
from sprat.cli.output import document, number
from sprat.cli.target import open_existing, workable_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> Parser:
    made = Parser(prog="sprat check")
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--max-workers",
        type=whole(0, settings.MAX_WORKERS),
        metavar="N",
        help="instead of the pool's setting, this once",
    )
    made.add_argument("--dry-run", action="store_true", help="decide, but change nothing")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    limits = config.check_overrides(os.environ)
    if asked.max_workers is not None:
        limits["max_workers"] = asked.max_workers
    with open_existing(asked.url) as store:
        pool = workable_pool(store, asked.pool)
        checked = checker.check(
            store,
            pool,
            max_workers=limits.get("max_workers"),
            min_workers=limits.get("min_workers"),
            dry_run=asked.dry_run,
        )
    if asked.json:
        document(checked)
        return DONE
    print(f"{checked.pool}: {checked.reason}")
    if checked.spawned:
        print(
            f"{'would launch' if asked.dry_run else 'launched'} {number(checked.spawned, 'worker')}"
        )
    if checked.reaped:
        freed = number(checked.released, "job")
        print(f"reaped {number(len(checked.reaped), 'worker')}, {freed} freed")
    return DONE
