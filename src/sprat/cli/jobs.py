"""`sprat jobs`: look at the jobs of a pool, and decide about them by hand."""

from __future__ import annotations

from sprat.cli import job_text
from sprat.cli.arguments import CommandParser, Namespace, whole
from sprat.cli.job_selection import add_filters, filters, known_job, move, named_jobs, typed
from sprat.cli.main import DONE
from sprat.cli.output import document, facts, number, one_line, table, talk
from sprat.cli.target import known_pool, open_existing, store_now
from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.store.store import Store

PAGE_SHOWN = 20
NOT_COMPACTED = {  # by kind of store
    "postgresql": "PostgreSQL reuses the space of deleted jobs by itself (autovacuum): "
    "nothing was compacted",
    "redis": "Redis returns the memory of deleted jobs by itself: nothing was compacted",
    "http": "nothing was compacted: run this command on the server's machine, with its store's URL",
}
REQUEUED = (model.POISONED, model.CANCELLED, model.BACKLOG)


def parser() -> CommandParser:
    made = CommandParser(prog="sprat jobs", has_json=False, has_url=False)
    family = made.family()
    what = "list the jobs of a pool, oldest first"
    lists = family.add_parser("list", help=what, what=what)
    lists.add_argument("pool", metavar="POOL")
    add_filters(lists)
    lists.add_argument("--newest", action="store_true", help="newest first")
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
    what = "make failed, cancelled and backlog jobs ready again, with fresh attempts"
    requeue = family.add_parser("requeue", aliases=["retry"], help=what, what=what)
    requeue.add_argument("ids", metavar="ID", nargs="*")
    requeue.add_argument(
        "--all-failed",
        "--all-poisoned",
        metavar="POOL",
        dest="all_failed",
        help="all failed jobs of a pool",
    )
    what = "end unfinished jobs; one that is running is stopped"
    cancel = family.add_parser("cancel", help=what, what=what)
    cancel.add_argument("ids", metavar="ID", nargs="*")
    cancel.add_argument("--all-pending", metavar="POOL", help="all jobs of a pool that wait")
    for parser, those in ((requeue, "failed jobs"), (cancel, "jobs that wait")):
        help_ = f"the {those} of a pool that fit the filters below; --status names others"
        parser.add_argument("--pool", metavar="POOL", help=help_)
        add_filters(parser)
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
    after = None if asked.after is None else known_job(store, asked.after).id
    wanted = {**filters(asked), "newest": asked.newest}
    items = pool.items(asked.status, limit=asked.limit, after=after, **wanted)
    is_full = len(items) == asked.limit
    more = is_full and bool(pool.items(asked.status, limit=1, after=items[-1].id, **wanted))
    if asked.json:
        document({"items": items, "next": items[-1].id if more else None})
        return
    now = store_now(store)
    rows = ((item.id, *job_text.row(item, now)) for item in items)
    table(("ID", "STATUS", "TRIES", "AGE", "ABOUT"), rows)
    if more:
        newest = " --newest" if asked.newest else ""
        limit = f" --limit {asked.limit}" if asked.limit != PAGE_SHOWN else ""
        options = f"{typed(asked)}{newest}{limit}"
        talk(f"more: sprat jobs list {asked.pool}{options} --after {items[-1].id}")


def _show(store: Store, asked: Namespace) -> None:
    item = known_job(store, asked.id)
    if asked.json:
        document(item)
        return
    bound = store.pool(item.pool).state().settings.max_transient
    facts(job_text.facts_of(item, store_now(store), bound))
    if item.error:
        print("error")
        for line in item.error.splitlines():
            print(f"  {one_line('|' + line)[1:]}")


def _requeue(store: Store, asked: Namespace) -> None:
    items = named_jobs(store, asked, model.POISONED)
    moved = move(store, asked, items, model.POISONED, lambda p: p.requeue)
    _tell(asked, "requeued", sum(moved.values()))
    for item in items:
        if item.status not in REQUEUED:
            state = job_text.state(item, store_now(store))
            rule = "only failed, cancelled and backlog ones can be requeued"
            talk(f"sprat: job {item.id} is {state}: {rule}")


def _cancel(store: Store, asked: Namespace) -> None:
    items = named_jobs(store, asked, model.PENDING)
    moved = move(store, asked, items, model.PENDING, lambda p: p.cancel)
    _tell(asked, "cancelled", sum(moved.values()))
    for item in items:
        if item.status in model.FINISHED:
            talk(f"sprat: job {item.id} is {job_text.state(item, store_now(store))} already")


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
    "retry": _requeue,
    "cancel": _cancel,
    "purge": _purge,
}
