"""`sprat push`: jobs from the command line, a file or standard input into a pool."""

from __future__ import annotations

import json

from sprat.cli.arguments import HIDDEN, CommandParser, seconds, whole
from sprat.cli.lines import each_payload, readable, standard_input
from sprat.cli.main import DONE, UsageError
from sprat.cli.output import document, number, say, talk
from sprat.cli.target import known_pool, open_any, open_existing
from sprat.core import model, payload
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from typing import Any

    from sprat.cli.arguments import Namespace
    from sprat.store.store import Store

CHUNK = 10_000  # of a long list are pushed in one step
MAX_COUNT = 10_000_000


def parser() -> CommandParser:
    made = CommandParser(prog="sprat push")
    made.add_argument("pool", metavar="POOL")
    made.add_argument("data", metavar="JSON", nargs="?", help="the payload; - reads it from stdin")
    made.add_argument("--file", metavar="FILE", help="one payload a line (JSONL); - is stdin")
    made.add_argument(
        "--count",
        type=whole(1, MAX_COUNT),
        metavar="N",
        help='so many copies of JSON; without it {"n": 1}, {"n": 2}, ...',
    )
    made.add_argument(
        "--priority", type=int, default=0, metavar="N", help="higher goes first; default 0"
    )
    made.add_argument(
        "--delay", type=seconds, default=0.0, metavar="SECONDS", help="not before so long from now"
    )
    made.add_argument("--tenant", metavar="NAME", help="whose it is: tenants take turns")
    made.add_argument("--group", metavar="NAME", help="only for workers with this capability")
    made.add_argument("--task", metavar="NAME", help="which task of the pool; default its handler")
    made.add_argument("--key", metavar="KEY", help="push again with the same key: still one job")
    made.add_argument("--create", action="store_true", help="make the pool if there is none")
    made.add_argument(
        "--max-attempts",
        type=int,
        metavar="N",
        help=f"attempts before it has failed for good; default {model.MAX_RETRIES}",
    )
    made.add_argument("--max-retries", type=int, help=HIDDEN)  # the older name
    return made


def main(arguments: Sequence[str]) -> int:
    asked = _read(arguments)
    _check(asked)
    if asked.file is None and asked.count is None:
        ids = _push_one(asked, _payload(asked.data))
    elif asked.file is None:
        copies = None if asked.data is None else _payload(asked.data)
        ids = _push_many(asked, _counted(asked.count, copies, asked.data is None))
    else:
        with readable(asked.file) as file:
            for _ in each_payload(file, asked.file):
                pass  # a bad line is found before anything is pushed
            ids = _push_many(asked, each_payload(file, asked.file))
    if asked.json:
        document({"pool": asked.pool, "count": len(ids), "ids": ids})
    elif asked.file is None and asked.count is None:
        say(ids[0])
    else:
        print(f"pushed {number(len(ids), 'job')} to {asked.pool}")
    return DONE


def _read(arguments: Sequence[str]) -> Namespace:
    """The command line, with the payload before, between or after the options."""
    reader = parser()
    asked, rest = reader.parse_known_args(arguments)
    if rest[:1] == ["--"]:
        del rest[0]
    if rest and asked.data is None and not _is_option(rest[0]):
        asked.data = rest.pop(0)
    if rest:
        reader.error(f"unrecognized arguments: {' '.join(rest)}")
    return asked


def _is_option(word: str) -> bool:
    return word.startswith("-") and word != "-" and not word[1:2].isdigit()


def _check(asked: Namespace) -> None:
    if asked.data is None and asked.file is None and asked.count is None:
        raise UsageError("nothing to push: give JSON, --file or --count")
    if asked.file is not None and (asked.data is not None or asked.count is not None):
        raise UsageError("--file brings its own payloads: leave JSON and --count out")
    if asked.key is not None and (asked.file is not None or asked.count is not None):
        raise UsageError("--key names one job: it does not go with --file or --count")
    payload.pool_name(asked.pool)
    payload.new_item(None, key=asked.key, **_options(asked))


def _payload(text: str) -> Any:
    try:
        return json.loads(standard_input().read() if text == "-" else text)
    except RecursionError:
        raise InvalidInput("the payload is nested too deeply") from None
    except ValueError as error:
        many = "Extra data: line" in str(error) and text == "-"
        do = "for one payload a line, say --file -" if many else "text needs quotes"
        raise InvalidInput(f"the payload is not JSON ({error}): {do}") from None


def _counted(count: int, copy: Any, are_numbered: bool) -> Iterator[Any]:
    for n in range(1, count + 1):
        yield {"n": n} if are_numbered else copy


def _push_one(asked: Namespace, data: Any) -> list[str]:
    with _open(asked) as store:
        _check_pool(store, asked)
        ids = [store.pool(asked.pool).push(data, key=asked.key, **_options(asked))]
        _warn(store, asked.pool)
        if asked.key is not None:
            _warn_of_an_old_job(store, ids[0])
        return ids


def _push_many(asked: Namespace, payloads: Iterable[Any]) -> list[str]:
    ids: list[str] = []
    with _open(asked) as store:
        _check_pool(store, asked)
        pool, options = store.pool(asked.pool), _options(asked)
        chunk: list[Any] = []
        for data in payloads:
            chunk.append(data)
            if len(chunk) == CHUNK:
                ids += pool.push_many(chunk, **options)
                chunk = []
        ids += pool.push_many(chunk, **options)
        _warn(store, asked.pool)
        return ids


def _options(asked: Namespace) -> dict[str, Any]:
    names = ("priority", "delay", "tenant", "group", "max_attempts", "max_retries", "task")
    return {name: getattr(asked, name) for name in names}


def _open(asked: Namespace) -> Store:
    return open_any(asked.url) if asked.create else open_existing(asked.url)


def _check_pool(store: Store, asked: Namespace) -> None:
    if not asked.create:
        known_pool(store, asked.pool, " (--create makes a new pool)")
    _check_task(store, asked)


def _check_task(store: Store, asked: Namespace) -> None:
    """A pool that serves several tasks has to know which one is meant."""
    tasks = store.pool(asked.pool).state().settings.tasks
    if asked.task is None and len(tasks) > 1:
        raise InvalidInput(
            f"pool {asked.pool} serves several tasks: name one with --task ({', '.join(tasks)})"
        )
    if asked.task is not None and asked.task not in tasks:
        known = f"has {', '.join(tasks)}" if tasks else "has no tasks"
        raise InvalidInput(
            f"pool {asked.pool} {known}, not {asked.task}: leave --task out, or fix it"
        )


def _warn(store: Store, pool: str) -> None:
    """A pool without a handler is allowed: its jobs wait."""
    if not store.pool(pool).state().settings.has_processor:
        talk(f"sprat: pool {pool} has no handler and no command yet: `sprat apply` gives it one")


def _warn_of_an_old_job(store: Store, item_id: str) -> None:
    """A key that names a job which will not run again pushes nothing."""
    item = store.get(item_id)
    if item.status in (model.POISONED, model.CANCELLED):
        state = "failed" if item.status == model.POISONED else "cancelled"
        how = f"`sprat jobs retry {item.id}` runs it again"
        talk(f"sprat: the job with this key is {state} already, nothing was pushed: {how}")
