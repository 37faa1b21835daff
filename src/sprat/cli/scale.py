"""`sprat scale`: the fleet of a pool, set to a number by hand."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, whole
from sprat.cli.main import DONE
from sprat.cli.output import document, talk
from sprat.cli.target import known_pool, open_existing, workable_pool
from sprat.core import fields
from sprat.fleet import scaler

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence


def parser() -> CommandParser:
    made = CommandParser(prog="sprat scale")
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--target-workers",
        type=whole(0, fields.MAX_WORKERS),
        metavar="N",
        required=True,
        help="launch or drain workers until there are so many",
    )
    made.add_argument("--dry-run", action="store_true", help="say what would be done")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        pool = known_pool(store, asked.pool)
        if asked.target_workers:
            workable_pool(store, pool)
        scaled = scaler.scale(store, pool, asked.target_workers, dry_run=asked.dry_run)
        most = store.pool(pool).state().settings.max_workers
    if scaled.launched and scaled.target > most:
        limit = f"the target {scaled.target} is more than max_workers {most}"
        talk(f"sprat: warning: {limit}: the next scaling pass may drain the surplus")
    if asked.json:
        document(scaled)
        return DONE
    would = "would be " if asked.dry_run else ""
    print(
        f"{pool}: current {scaled.current}, target {scaled.target}: "
        f"{scaled.launched} {would}launched, {scaled.terminating} {would}terminating"
    )
    return DONE
