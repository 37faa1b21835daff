"""`sprat jobs`: look at the items of a pool, and decide about them by hand."""

from __future__ import annotations

from sprat import model
from sprat.cli import DONE, UsageError, blockers
from sprat.cli.arguments import Namespace, Parser, whole
from sprat.cli.output import document, duration, facts, number, one_line, table, talk
from sprat.cli.target import known_pool, open_existing, start_fleet, store_now

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from sprat.pool import WorkPool
    from sprat.store import Store

PAGE_SHOWN = 20
LABELS = {"transients": "transient failures", "given_back": "given back"}
NOT_COMPACTED = {  # by kind of store
    "postgresql": "PostgreSQL reuses the space of deleted jobs by itself (autovacuum): "
    "nothing was compacted",
    "redis": "Redis returns the memory of deleted jobs by itself: nothing was compacted",
    "http": "nothing was compacted: run this command on the server's machine, with its store's URL",
}
PAGE = 10_000  # items that are changed in one step


def parser() -> Parser:
    made = Parser(prog="sprat jobs", has_json=False, has_url=False)
    family = made.family()
    what = "list the jobs of a pool, oldest first"
    lists = family.add_parser("list", help=what, what=what)
    lists.add_argument("pool", metavar="POOL")
    lists.add_argument("--status", choices=model.ITEM_STATUSES, help="only these")
    lists.add_argument(
        "--limit",
        type=whole(1, 10_000),
        default=PAGE_SHOWN,
        metavar="N",
        help=f"default {PAGE_SHOWN}",
    )
    lists.add_argument("--after", metavar="ID", help="the last job of the page before")
    what = "show one job in full: payload, result, error"
    family.add_parser("show", help=what, what=what).add_argument("id", metavar="ID")
    what = "make poisoned, cancelled and backlog jobs pending again, with fresh attempts"
    requeue = family.add_parser("requeue", help=what, what=what)
    requeue.add_argument("ids", metavar="ID", nargs="*")
    requeue.add_argument("--all-poisoned", metavar="POOL", help="all poisoned jobs of a pool")
    what = "end unfinished jobs; one that is running is stopped"
    cancel = family.add_parser("cancel", help=what, what=what)
    cancel.add_argument("ids", metavar="ID", nargs="*")
    cancel.add_argument("--all-pending", metavar="POOL", help="all jobs of a pool that wait")
    what = "delete finished jobs that were kept for as long as their pool's settings say"
    purge = family.add_parser("purge", help=what, what=what)
    purge.add_argument("pool", metavar="POOL", nargs="?", help="only this one; else all")
    purge.add_argument(
        "--compact", action="store_true", help="return the space of what was deleted to the disk"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        ACTIONS[asked.action](store, asked)
    return DONE


def _list(store: Store, asked: Namespace) -> None:
    pool = store.pool(known_pool(store, asked.pool))
    items = pool.items(asked.status, limit=asked.limit, after=asked.after)
    is_full = len(items) == asked.limit
    more = is_full and bool(pool.items(asked.status, limit=1, after=items[-1].id))
    if asked.json:
        document({"items": items, "next": items[-1].id if more else None})
        return
    now = store_now(store)
    table(
        ("ID", "STATUS", "TRIES", "AGE", "ABOUT"),
        (
            (
                item.id,
                _status(item, now),
                f"{item.attempts}/{item.max_retries}",
                duration(max(0.0, now - item.created_at)),
                _about(item),
            )
            for item in items
        ),
    )
    if more:
        status = f" --status {asked.status}" if asked.status else ""
        limit = f" --limit {asked.limit}" if asked.limit != PAGE_SHOWN else ""
        talk(f"more: sprat jobs list {asked.pool}{status}{limit} --after {items[-1].id}")


def _status(item: model.WorkItem, now: float) -> str:
    if item.hold is not None:
        return "ready (held)"
    is_delayed = item.status == model.PENDING and item.run_at is not None and item.run_at > now
    return "delayed" if is_delayed else item.status


def _about(item: model.WorkItem) -> str:
    if item.hold is not None:
        return f"{item.task}: {item.hold}"
    if item.error and item.status != model.DONE:
        return item.error.partition("\n")[0]
    return f"{item.task or ''} {one_line(item.data)}".strip()


def _show(store: Store, asked: Namespace) -> None:
    item = store.get(asked.id)
    if asked.json:
        document(item)
        return
    now = store_now(store)
    hidden = ("token", "hold", "error", "created_at", "run_at", "claimed_at", "finished_at")
    bound = store.pool(item.pool).state().settings.max_transient
    told = {
        "status": f"ready (held: {item.hold})" if item.hold else item.status,
        "transients": blockers.transients(item, bound) if item.transients else "",
    }
    about = {name: value for name, value in item.as_dict().items() if name not in hidden} | told
    facts((LABELS.get(name, name), value) for name, value in about.items())
    for name in ("created_at", "run_at", "claimed_at", "finished_at"):
        moment = getattr(item, name)
        if moment is not None:
            when = (
                f"in {duration(moment - now)}" if moment > now else f"{duration(now - moment)} ago"
            )
            print(f"{name.replace('_at', ''):<9} {when}")
    if item.error:
        print("error")
        for line in item.error.splitlines():
            print(f"  {one_line('|' + line)[1:]}")


def _requeue(store: Store, asked: Namespace) -> None:
    moved = _move(store, asked.ids, asked.all_poisoned, model.POISONED, lambda p: p.requeue)
    for pool in moved:
        start_fleet(store, pool)
    _tell(asked, "requeued", sum(moved.values()))


def _cancel(store: Store, asked: Namespace) -> None:
    moved = _move(store, asked.ids, asked.all_pending, model.PENDING, lambda p: p.cancel)
    _tell(asked, "cancelled", sum(moved.values()))


def _move(
    store: Store,
    ids: Sequence[str],
    everything_of: str | None,
    status: str,
    verb: Callable[[WorkPool], Callable[..., int]],
) -> dict[str, int]:
    """Move the named items, or all of a pool in this status; for each pool how many were."""
    if bool(ids) == (everything_of is not None):
        raise UsageError(f"name jobs by their ids, or a pool with --all-{status}: one of the two")
    if everything_of is not None:
        pool = store.pool(known_pool(store, everything_of))
        return {pool.name: sum(verb(pool)(*page) for page in _pages(pool, status))}
    owners: dict[str, list[str]] = {}
    for item_id in ids:
        owners.setdefault(store.get(item_id).pool, []).append(item_id)
    return {name: verb(store.pool(name))(*owned) for name, owned in owners.items()}


def _pages(pool: WorkPool, status: str) -> Iterator[list[str]]:
    last = None
    while page := [item.id for item in pool.items(status, limit=PAGE, after=last)]:
        yield page
        last = page[-1]


def _purge(store: Store, asked: Namespace) -> None:
    names = store.pools() if asked.pool is None else [known_pool(store, asked.pool)]
    deleted = 0
    for name in names:
        while some := store.pool(name).purge():
            deleted += some
    if not asked.compact:
        _tell(asked, "purged", deleted)
        return
    sizes = store.compact()
    if asked.json:
        compacted = sizes and {"before_bytes": sizes[0], "after_bytes": sizes[1]}
        document({"purged": deleted, "compacted": compacted})
        return
    _tell(asked, "purged", deleted)
    if sizes is None:
        kind = str(store.describe()["kind"])
        talk(NOT_COMPACTED.get(kind, "this store holds no disk space: nothing to compact"))
    else:
        print(f"{sizes[1] / 1e6:,.1f} MB on disk, {sizes[0] / 1e6:,.1f} MB before")


def _tell(asked: Namespace, what: str, n: int) -> None:
    if asked.json:
        document({what: n})
    else:
        print(f"{number(n, 'job')} {what}")


ACTIONS: dict[str, Callable[[Store, Namespace], None]] = {
    "list": _list,
    "show": _show,
    "requeue": _requeue,
    "cancel": _cancel,
    "purge": _purge,
}
