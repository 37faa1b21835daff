"""`sprat check`: one scaling pass over a pool, or over all."""

from __future__ import annotations

import os
import time

from sprat.cli.arguments import CommandParser, seconds, whole
from sprat.cli.main import DONE, FAILED, UsageError
from sprat.cli.output import document, number, say, talk
from sprat.cli.target import attend, open_existing, workable_pool
from sprat.config import project_file
from sprat.core import fields
from sprat.core.errors import SpratError, StoreUnavailable
from sprat.fleet import checker, controller_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.cli.arguments import Namespace
    from sprat.fleet.checker import Checked
    from sprat.store.store import Store

RETRY_SECONDS = 2.0  # between two looks whether the store is there


def parser() -> CommandParser:
    made = CommandParser(prog="sprat check")
    made.add_argument("pool", metavar="POOL", nargs="?")
    made.add_argument(
        "--all", action="store_true", help="every pool of the store that has a handler"
    )
    made.add_argument(
        "--max-workers",
        type=whole(0, fields.MAX_WORKERS),
        metavar="N",
        help="instead of the pool's setting, this once",
    )
    made.add_argument("--dry-run", action="store_true", help="decide, but change nothing")
    made.add_argument(
        "--wait",
        type=seconds,
        default=0.0,
        metavar="SECONDS",
        help="wait up to this long for a store that cannot be reached yet",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    if asked.all == (asked.pool is not None):
        raise UsageError("name one POOL, or use --all")
    end = time.monotonic() + asked.wait
    while True:
        try:
            with open_existing(asked.url) as store:
                return _all(store, asked) if asked.all else _one(store, asked)
        except StoreUnavailable:
            if time.monotonic() >= end:
                raise
        time.sleep(RETRY_SECONDS)


def _one(store: Store, asked: Namespace) -> int:
    checked = _check(store, workable_pool(store, asked.pool), asked)
    if asked.json:
        document(checked)
    else:
        _print(checked, asked)
    return DONE


def _all(store: Store, asked: Namespace) -> int:
    """What goes wrong in one pool does not stop the others."""
    done: list[Checked] = []
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}
    for pool in store.pools():
        try:
            if why := _not_ours(store, pool):
                skipped[pool] = why
            else:
                done.append(_check(store, pool, asked))
        except StoreUnavailable:
            raise
        except SpratError as error:
            failed[pool] = " ".join(str(error).split())
    if asked.json:
        document({"pools": done, "skipped": skipped, "failed": failed})
    else:
        for pool, why in skipped.items():
            say(f"{pool}: skipped, {why}")
        for checked in done:
            _print(checked, asked)
        for pool, why in failed.items():
            talk(f"sprat: pool {pool}: {why}")
    return FAILED if failed else DONE


def _not_ours(store: Store, pool: str) -> str | None:
    """Why no worker is to be started for the pool from here."""
    if not store.pool(pool).state().settings.has_processor:
        return "it has no handler and no command"
    return "a controller scales it" if controller_lease.is_led(store.backend, pool) else None


def _check(store: Store, pool: str, asked: Namespace) -> Checked:
    limits = project_file.check_overrides(os.environ)
    if asked.max_workers is not None:
        limits["max_workers"] = asked.max_workers
    checked = checker.check(
        store,
        pool,
        max_workers=limits.get("max_workers"),
        min_workers=limits.get("min_workers"),
        dry_run=asked.dry_run,
    )
    if not asked.dry_run:
        attend(store, pool)
    return checked


def _print(checked: Checked, asked: Namespace) -> None:
    say(f"{checked.pool}: {checked.reason}")
    if checked.spawned:
        print(
            f"{'would launch' if asked.dry_run else 'launched'} {number(checked.spawned, 'worker')}"
        )
    if checked.reaped:
        freed = number(checked.released, "job")
        print(f"reaped {number(len(checked.reaped), 'worker')}, {freed} freed")
