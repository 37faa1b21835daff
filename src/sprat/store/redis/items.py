"""The verbs about items."""

from __future__ import annotations

import os

from sprat.core import jsontext, model
from sprat.core.errors import UnknownWorker
from sprat.store.redis.rows import counts_of, handed_out, item_of, micros, signed, stored
from sprat.store.redis.scripts import sha1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.redis.client import RedisClient

BEYOND = 1 << 50  # the place after the newest item
AGAIN = 6  # the place of "this is sent again" among the arguments of an exchange


def new_request() -> str:
    """Names one call, so that its repetition is known as such."""
    return os.urandom(8).hex()


def push(client: RedisClient, pool: str, items: Sequence[model.NewItem]) -> list[str]:
    if len(items) == 1:
        item_id, data, max_retries, priority, *rest, task = items[0]
        if not any(rest):
            data = stored(data, task)
            client.run("push_one", pool, item_id, data, max_retries, priority, pool=pool)
            return [item_id]
    options: dict[tuple[object, ...], int] = {}  # many items have the same
    values: list[str | int] = []
    for new in items:
        item_id, data, max_retries, priority, delay, tenant, group, key, backlog, task = new
        about = (max_retries, priority, delay, tenant, group, backlog)
        number = options.get(about)
        if number is None:
            number = options[about] = len(options) + 1
        fingerprint = digest(data, task) if key else ""
        values += (item_id, stored(data, task), number, key or "", fingerprint)
    chosen: list[str | int] = []
    for max_retries, priority, delay, tenant, group, backlog in options:
        chosen += (max_retries, priority, micros(delay), tenant or "", group or "", int(backlog))  # type: ignore[arg-type, call-overload]
    ids: list[str] = client.run("push", pool, len(options), *chosen, *values, pool=pool)
    return ids


def digest(data: str, task: str | None) -> str:
    """The same for the same task and payloads that are equal as JSON."""
    import json

    return sha1(stored(json.dumps(json.loads(data), sort_keys=True), task).encode())


def exchange(
    client: RedisClient,
    pool: str,
    worker: WorkerRef | None,
    *,
    settlements: Sequence[model.Settlement],
    start: ClaimRef | None,
    announced: bool,
    request: tuple[str, int, bool],
) -> model.Exchange:
    name, claim, again = request
    if claim and worker is None:
        raise UnknownWorker("only a worker can claim: say which")
    worker_id, incarnation = ("", None) if worker is None else worker
    started_id, started_token = ("", "") if start is None else start
    values: list[str | int] = [
        *(pool, worker_id, "" if incarnation is None else incarnation, claim, int(announced)),
        *(name, str(int(again)), started_id, started_token or ""),
        *settlement_fields(settlements),
    ]
    script = "exchange_marked" if client.is_mark_due() else "exchange"
    settled, was_started, runs, version = client.run(script, *values, again_at=AGAIN)
    return model.Exchange.of(
        (
            tuple([digit == "1" for digit in settled]),
            was_started == 1,
            tuple([item for run in runs for item in handed_out(run, pool, worker_id)]),
            version,
        )
    )


def settlement_fields(settlements: Sequence[model.Settlement]) -> list[str | int]:
    """Settlements as exchange.lua reads them: shorter if all are done and have no result."""
    values: list[str | int] = [3]
    for item_id, token, outcome, result, _, _, seconds in settlements:
        if outcome != model.COMPLETE or result is not None:
            return all_settlement_fields(settlements)
        values += (item_id, token or "", "" if seconds is None else micros(seconds))
    return values


def all_settlement_fields(settlements: Sequence[model.Settlement]) -> list[str | int]:
    values: list[str | int] = [7]
    for item_id, token, outcome, result, error, delay, seconds in settlements:
        values += (
            *(item_id, token or "", "" if seconds is None else micros(seconds)),
            *(outcome, result or "", signed(error), micros(delay)),
        )
    return values


def save(
    client: RedisClient,
    claim: ClaimRef,
    checkpoint: str | None,
    progress: float | None,
    note: str | None,
) -> bool:
    fraction = "" if progress is None else repr(progress)
    saved = client.run(
        "save", claim.item_id, claim.token or "", checkpoint or "", fraction, signed(note)
    )
    return bool(saved)


def release(client: RedisClient, pool: str, worker_id: str, started: Sequence[str] | None) -> int:
    return int(client.run("release", pool, worker_id, named(started)))


def named(started: Sequence[str] | None) -> str:
    return "null" if started is None else jsontext.dumps(list(started))


def steer(client: RedisClient, verb: str, pool: str, item_ids: Sequence[str]) -> int:
    return int(client.run("steer", verb, pool, *item_ids))


def get(client: RedisClient, item_id: str) -> model.WorkItem:
    return item_of(client.run("item", item_id))


def pools_of(client: RedisClient, item_ids: Sequence[str]) -> list[str | None]:
    return [pool or None for pool in client.run("pools_of", *item_ids)]


def page(
    client: RedisClient, pool: str, status: str | None, limit: int, after: str | None
) -> list[model.WorkItem]:
    items: list[model.WorkItem] = []
    place: int | None = 0
    while place is not None and len(items) < limit:
        missing = limit - len(items)
        place, rows, _ = client.run("items", pool, status or "", missing, after or "", place, "{}")
        items += [item_of(row) for row in rows]
        after = None
    return items


def find(
    client: RedisClient, pool: str, which: model.ItemFilter, limit: int, after: str | None
) -> model.Found:
    filters = {name: value for name, value in which.as_dict().items() if value is not None}
    for name in ("older_seconds", "newer_seconds"):
        if name in filters:
            filters[name] = micros(filters[name])
    values = (pool, which.status or "", limit, after or "", BEYOND if which.newest else 0)
    place, rows, last = client.run("items", *values, jsontext.dumps(filters))
    items = tuple(item_of(row) for row in rows)
    return model.Found(items=items, after=None if place is None else last)


def counts(client: RedisClient, pool: str) -> model.Counts:
    return counts_of(client.run("counts", pool))
