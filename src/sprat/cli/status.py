"""`sprat status`: every pool on one line, or one pool in full."""

from __future__ import annotations

from sprat.cli import blockers
from sprat.cli.arguments import CommandParser
from sprat.cli.main import DONE
from sprat.cli.output import document, duration, facts, paragraph, rate, table
from sprat.cli.target import known_pool, open_existing
from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sprat.store.pool import WorkPool
    from sprat.store.store import Store

WINDOW_SECONDS = 60.0  # that the rates are taken over


def parser() -> CommandParser:
    made = CommandParser(prog="sprat status")
    made.add_argument("pool", metavar="POOL", nargs="?", help="only this one, in full")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        names = store.pools() if asked.pool is None else [known_pool(store, asked.pool)]
        pools = [look(store, name) for name in names]
    if asked.json:
        document({"pools": pools})
    elif asked.pool is not None:
        _show(pools[0])
    elif not pools:
        print("no pools yet: `sprat apply` makes those of sprat.yml, `sprat push --create` one")
    else:
        _list(pools)
    return DONE


def look(store: Store, name: str) -> dict[str, Any]:
    """What there is to say about a pool, read at one moment."""
    pool = store.pool(name)
    seen = pool.observe(window=WINDOW_SECONDS)
    counts, stats = seen.counts, seen.stats
    span = stats.seconds or 1.0
    workers = dict.fromkeys(model.LIVE, 0)
    for worker in seen.workers:
        workers[worker.status] += 1
    return {
        "pool": name,
        **blockers.fields(seen),
        **counts.as_dict(),
        "ready": counts.ready,
        "workers": {**workers, "idle": seen.idle},
        "oldest_ready_seconds": seen.oldest_ready_seconds,
        "next_due_seconds": seen.next_due_seconds,
        "arrivals_per_second": stats.arrivals / span,
        "finished_per_second": stats.finished / span,
        "failed_per_second": stats.failed / span,
        "wait_p50": stats.wait_p50,
        "wait_p95": stats.wait_p95,
        "run_p50": stats.run_p50,
        "run_p95": stats.run_p95,
        "launch_failures": seen.launch_failures,
        **_retrying(pool, counts),
    }


def _retrying(pool: WorkPool, counts: model.Counts) -> dict[str, Any]:
    """How many jobs wait after transient failures, and the one that had most of them."""
    items = blockers.retrying(pool, counts)
    bound = pool.state().settings.max_transient if items else None
    worst = blockers.transients(items[0], bound) if items else None
    return {"retrying": len(items), "most_transients": worst}


def _list(pools: list[dict[str, Any]]) -> None:
    headings = ("POOL", "READY", "DELAYED", "RUNNING", "DONE", "FAILED", "WORKERS", "OLDEST")
    table(
        (*headings, "RATE"),
        (
            (
                p["pool"],
                *(p[name] for name in ("ready", "delayed", "claimed", "done", "poisoned")),
                _fleet(p["workers"]),
                duration(p["oldest_ready_seconds"]),
                "paused" if p["paused"] else _per_minute(p["finished_per_second"]),
            )
            for p in pools
        ),
        narrow=0,
    )
    for p in pools:
        for sentence in _notes(p):
            paragraph(sentence)


def _per_minute(per_second: float) -> str:
    """The same unit in every row."""
    n = 60 * per_second
    return f"{n:,.0f}/min" if n >= 100 or not n else f"{n:.1f}/min"


def _notes(p: dict[str, Any]) -> Iterator[str]:
    """What the table has no room for."""
    if p["paused"]:
        yield f"{p['pool']} is {blockers.pause(p['paused_seconds'], p['pause_reason'])}"
    for sentence in blockers.held(p["parked"]):
        yield f"{p['pool']}: {sentence}"


def _fleet(workers: dict[str, int]) -> str:
    """How many work, and how many come or go: 3, or 3+2-1."""
    text = str(workers[model.ACTIVE])
    text += f"+{workers[model.STARTING]}" if workers[model.STARTING] else ""
    return text + (f"-{workers[model.TERMINATING]}" if workers[model.TERMINATING] else "")


def _show(p: dict[str, Any]) -> None:
    fleet = p["workers"]
    facts(
        (
            ("pool", p["pool"]),
            ("paused", _pause(p)),
            ("ready", str(p["ready"])),
            ("delayed", _delayed(p)),
            ("retrying", _retries(p)),
            ("held", "; ".join(blockers.held(p["parked"]))),
            ("running", str(p["claimed"])),
            ("done", str(p["done"])),
            ("failed", str(p["poisoned"]) if p["poisoned"] else ""),
            *((name, str(p[name])) for name in ("cancelled", "backlog") if p[name]),
            (
                "workers",
                f"{fleet['active']} active ({fleet['idle']} idle), {fleet['starting']} starting, "
                f"{fleet['terminating']} leaving",
            ),
            ("launches", f"{p['launch_failures']} failed in a row" if p["launch_failures"] else ""),
            ("oldest", f"ready for {duration(p['oldest_ready_seconds'])}" if p["ready"] else ""),
            (
                "last minute",
                f"{rate(p['arrivals_per_second'])} in, {rate(p['finished_per_second'])} finished, "
                f"{rate(p['failed_per_second'])} failed",
            ),
            ("waited", f"{duration(p['wait_p50'])} (p50), {duration(p['wait_p95'])} (p95)"),
            ("ran", f"{duration(p['run_p50'])} (p50), {duration(p['run_p95'])} (p95)"),
        )
    )


def _pause(p: dict[str, Any]) -> str:
    pause = blockers.pause(p["paused_seconds"], p["pause_reason"])
    return pause.removeprefix("paused ") if p["paused"] else ""


def _retries(p: dict[str, Any]) -> str:
    if not p["retrying"]:
        return ""
    return f"{p['retrying']} delayed after transient failures, the most {p['most_transients']}"


def _delayed(p: dict[str, Any]) -> str:
    if not p["delayed"]:
        return ""
    return f"{p['delayed']}, the next is due in {duration(p['next_due_seconds'])}"
