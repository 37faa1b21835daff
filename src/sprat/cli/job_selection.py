"""Which jobs a command means: one by its id or the beginning of it, or those that fit a filter."""

from __future__ import annotations

from sprat.cli.arguments import CommandParser, Namespace, seconds
from sprat.cli.main import UsageError
from sprat.cli.target import known_pool
from sprat.core import item_filter, model, payload
from sprat.core.errors import InvalidInput, UnknownItem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from sprat.store.pool import WorkPool
    from sprat.store.store import Store

FILTERS = ("error", "key", "tenant", "older", "newer")
ALL_OF = {model.POISONED: "failed", model.PENDING: "pending"}  # --all-...
PAGE = 10_000  # jobs that are changed in one step


def add_filters(parser: CommandParser) -> None:
    parser.add_argument("--status", choices=item_filter.WORDS, help="only these")
    parser.add_argument("--error", metavar="TEXT", help="only jobs with this text in their error")
    parser.add_argument("--key", metavar="KEY", help="only the job with this key")
    parser.add_argument("--tenant", metavar="NAME", help="only jobs of this tenant")
    for name, when in (("--older", "longer ago than"), ("--newer", "within the last")):
        help_ = f"only jobs pushed {when} TIME"
        parser.add_argument(name, type=seconds, metavar="TIME", help=help_)


def filters(asked: Namespace) -> dict[str, Any]:
    """Parameters of `WorkPool.items`."""
    return {name: getattr(asked, name) for name in FILTERS}


def typed(asked: Namespace) -> str:
    """The filters as they were typed, for a command that goes on."""
    import shlex

    named = {name: getattr(asked, name) for name in ("status", *FILTERS)}
    words = (f" --{name} {shlex.quote(f'{value}')}" for name, value in named.items() if value)
    return "".join(words)


def known_job(store: Store, text: str) -> model.WorkItem:
    """The job with this id, or the only one whose id begins with it."""
    try:
        return store.get(text)
    except UnknownItem:
        payload.label(text, "job id")
    found: list[model.WorkItem] = []
    for pool in store.pools():
        found += _beginning_with(store, pool, text)
        if len(found) > 1:
            raise InvalidInput(
                f"several jobs begin with {text!r}, such as {found[0].id} and {found[1].id}: "
                f"give more of the id"
            )
    if not found:
        raise UnknownItem(f"no job has the id {text!r}: `sprat jobs list POOL` shows them")
    return found[0]


def _beginning_with(store: Store, pool: str, prefix: str) -> list[model.WorkItem]:
    """Up to two of them: more need not be known."""
    wanted, after = model.ItemFilter(prefix=prefix), None
    found: list[model.WorkItem] = []
    while True:
        step = store.backend.find(pool, wanted, 2 - len(found), after)
        found += step.items
        after = step.after
        if after is None or len(found) == 2:
            return found


def named_jobs(store: Store, asked: Namespace, status: str) -> list[model.WorkItem]:
    """The jobs that were named by id: none if they are to be chosen by a filter."""
    word = ALL_OF[status]
    all_of = getattr(asked, f"all_{word}")
    if [bool(asked.ids), all_of is not None, asked.pool is not None].count(True) != 1:
        raise UsageError(
            f"name jobs by their ids, or a pool with --all-{word} or --pool: one of the three"
        )
    if asked.ids and typed(asked):
        raise UsageError("filters go with a pool, not with the ids of jobs")
    if asked.pool is not None and not typed(asked):
        raise UsageError(f"--pool needs a filter: --all-{word} {asked.pool} means all of them")
    if all_of is not None and asked.status is not None:
        raise UsageError(f"--all-{word} names a status already: use --pool with --status")
    return [known_job(store, text) for text in asked.ids]


def move(
    store: Store,
    asked: Namespace,
    items: list[model.WorkItem],
    status: str,
    verb: Callable[[WorkPool], Callable[..., int]],
) -> dict[str, int]:
    """Do it to these items, to all of a pool in this status, or to those of a pool that fit the
    filters; for each pool how many were changed."""
    if items:
        return _move_named(store, items, verb)
    pool = store.pool(known_pool(store, getattr(asked, f"all_{ALL_OF[status]}") or asked.pool))
    pages = _pages(pool, asked.status or status, filters(asked))
    return {pool.name: sum(verb(pool)(*page) for page in pages)}


def _move_named(
    store: Store, items: list[model.WorkItem], verb: Callable[[WorkPool], Callable[..., int]]
) -> dict[str, int]:
    owners: dict[str, list[str]] = {}
    for item in items:
        owners.setdefault(item.pool, []).append(item.id)
    return {name: verb(store.pool(name))(*owned) for name, owned in owners.items()}


def _pages(pool: WorkPool, status: str, wanted: dict[str, Any]) -> Iterator[list[str]]:
    last = None
    while page := pool.items(status, limit=PAGE, after=last, **wanted):
        last = page[-1].id
        yield [item.id for item in page]
