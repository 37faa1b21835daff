"""`sprat explain`: why the fleet has the size it has, from what was recorded."""

from __future__ import annotations

from sprat.cli import blockers
from sprat.cli.arguments import CommandParser, whole
from sprat.cli.main import DONE
from sprat.cli.output import document, duration, one_line, paragraph, say
from sprat.cli.target import known_pool, open_existing, store_now
from sprat.core import model
from sprat.fleet import checker, controller_lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.store.store import Store


def parser() -> CommandParser:
    made = CommandParser(prog="sprat explain")
    made.add_argument("pool", metavar="POOL", nargs="?", help="only this one; else all")
    made.add_argument(
        "-n", type=whole(1, 1000), default=5, metavar="N", help="so many decisions; default 5"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        names = store.pools() if asked.pool is None else [known_pool(store, asked.pool)]
        pools = [situation(store, name, asked.n) for name in names]
        now = store_now(store)
    if asked.json:
        document({"pools": pools})
        return DONE
    for place, pool in enumerate(pools):
        if place:
            print()
        _print(pool, now)
    if not pools:
        print("no pools yet")
    return DONE


def situation(store: Store, pool: str, n: int) -> dict[str, Any]:
    """What a pass would decide now, what was decided before, and who came to grief."""
    lost = [w for w in store.workers.list(status=model.LOST, pool_id=pool) if w.reason]
    settings = store.pool(pool).state().settings
    led = controller_lease.in_force(store.backend, pool, None, settings)
    return {
        "pool": pool,
        **blockers.fields(store.pool(pool).observe()),
        "now": checker.check(store, pool, dry_run=True, settings=led or settings),
        "has_processor": settings.has_processor,
        "controller": controller_lease.leader(store.backend, pool),
        "decisions": store.pool(pool).decisions(limit=n),
        "lost": sorted(lost, key=lambda w: w.started_at)[-n:],
    }


def _print(pool: Mapping[str, Any], now: float) -> None:
    seen: checker.Checked = pool["now"]
    paragraph(f"{pool['pool']}: {seen.reason}")
    if pool["paused"]:
        paragraph(blockers.pause(pool["paused_seconds"], pool["pause_reason"]))
    for sentence in blockers.held(pool["parked"]):
        paragraph(sentence)
    if not pool["has_processor"]:
        print("nobody is started: it has no handler and no command, `sprat apply` gives it one")
    if pool["controller"]:
        say(f"a controller scales it: {pool['controller']}")
    print("\nlast decisions:" if pool["decisions"] else "\nnothing was decided yet")
    for decision in pool["decisions"]:
        _print_decision(decision, now)
    if pool["lost"]:
        print("\nworkers that were lost:")
    for worker in pool["lost"]:
        when = duration(max(0.0, now - worker.last_heartbeat))
        what = "never came to work" if worker.pid is None else "was at work"
        paragraph(f"{when} ago  {worker.worker_id} {what}: {one_line(worker.reason)}", 2)


def _print_decision(decision: model.RecordedDecision, now: float) -> None:
    when = duration(max(0.0, now - decision.at))
    size = f"{decision.current} -> {decision.desired}"
    paragraph(f"{when} ago  {decision.direction} {size} ({decision.policy}): {decision.reason}", 2)
    if decision.inputs:
        words = (f"{value} {name.replace('_', ' ')}" for name, value in decision.inputs.items())
        paragraph(f"seen: {', '.join(words)}", 6)
    done = {"launched": decision.launched, "drained": decision.drained}
    for what, workers in done.items():
        if workers:
            paragraph(f"{what}: {_named(workers)}", 6)


def _named(workers: Sequence[str]) -> str:
    some = ", ".join(workers[:2])
    return some if len(workers) <= 2 else f"{some} and {len(workers) - 2} more"
