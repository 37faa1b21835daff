"""`sprat workers`: who works for this store, and sending them home."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, Namespace
from sprat.cli.job_text import moment
from sprat.cli.main import DONE, UsageError
from sprat.cli.output import document, duration, facts, number, table
from sprat.cli.target import known_pool, open_existing, store_now
from sprat.core import model
from sprat.core.errors import UnknownWorker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.store.store import Store

BY_HAND = "drained by hand"
MOMENTS = {"started_at": "started", "last_heartbeat": "seen", "lease_until": "lease end"}


def parser() -> CommandParser:
    made = CommandParser(prog="sprat workers", has_json=False, has_url=False)
    family = made.family()
    what = "list the workers that are there now"
    lists = family.add_parser("list", help=what, what=what)
    lists.add_argument("pool", metavar="POOL", nargs="?", help="only of this one")
    lists.add_argument("--status", choices=model.WORKER_STATUSES, help="only these")
    lists.add_argument("--all", action="store_true", help="also those that have left or were lost")
    what = "show one worker in full"
    family.add_parser("show", help=what, what=what).add_argument("id", metavar="ID")
    what = "let workers finish their job and leave"
    drain = family.add_parser("drain", help=what, what=what)
    drain.add_argument("ids", metavar="ID", nargs="*")
    drain.add_argument("--pool", metavar="POOL", help="all workers of this pool")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        ACTIONS[asked.action](store, asked)
    return DONE


def _list(store: Store, asked: Namespace) -> None:
    pool = None if asked.pool is None else known_pool(store, asked.pool)
    status = asked.status or (None if asked.all else model.LIVE)
    workers = store.workers.list(status=status, pool_id=pool)
    if asked.json:
        document({"workers": workers})
        return
    if not workers:
        print("no workers")
        return
    now = store_now(store)
    table(
        ("ID", "POOL", "STATUS", "PID", "SEEN", "ABOUT"),
        (
            (
                worker.worker_id,
                worker.pool_id,
                worker.status,
                "-" if worker.pid is None else str(worker.pid),
                duration(max(0.0, now - worker.last_heartbeat)),
                _about(worker),
            )
            for worker in workers
        ),
    )


def _about(worker: model.WorkerRecord) -> str:
    if worker.reason:
        return worker.reason
    if worker.claims:
        return f"job {worker.current_task_id}"
    return "suspended" if worker.is_suspended else "-"


def _show(store: Store, asked: Namespace) -> None:
    worker = _get(store, asked.id)
    if asked.json:
        document(worker)
        return
    now = store_now(store)
    known = [
        (name.removesuffix("_id").replace("_", " "), value)
        for name, value in worker.as_dict().items()
        if name not in MOMENTS
    ]
    facts(known + [(name, moment(getattr(worker, key), now)) for key, name in MOMENTS.items()])


def _drain(store: Store, asked: Namespace) -> None:
    if bool(asked.ids) == (asked.pool is not None):
        raise UsageError("name workers by their ids, or --pool: one of the two")
    if asked.pool is not None:
        pool = known_pool(store, asked.pool)
        fleet = store.workers.list(status=(model.STARTING, model.ACTIVE), pool_id=pool)
        ids = [worker.worker_id for worker in fleet]
    else:
        ids = [_get(store, worker_id).worker_id for worker_id in asked.ids]
    drained = [
        worker_id
        for worker_id in ids
        if store.workers.update_status(worker_id, model.TERMINATING, reason=BY_HAND)
    ]
    if asked.json:
        document({"drained": drained})
    else:
        print(f"{number(len(drained), 'worker')} will leave after the job at hand")


def _get(store: Store, worker_id: str) -> model.WorkerRecord:
    worker = store.workers.get(worker_id)
    if worker is None:
        raise UnknownWorker(f"there is no worker {worker_id!r}: `sprat workers list` names them")
    return worker


ACTIONS: dict[str, Callable[[Store, Namespace], None]] = {
    "list": _list,
    "show": _show,
    "drain": _drain,
}
