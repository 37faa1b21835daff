"""Items: pushed, claimed, settled, read and counted."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.errors import StoreUnavailable, UnknownWorker
from sprat.core.runtime import runtime
from sprat.store.backend import Backend
from sprat.store.redis import wakeup
from sprat.store.redis.rows import counts_of, handed_out, item_of, micros, signed, stored
from sprat.store.redis.scripts import sha1

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.backend import ClaimRef, WorkerRef
    from sprat.store.lost_claims import LostClaims
    from sprat.store.redis.client import RedisClient

    Shared = tuple[int, int, float, str | None, str | None, bool]

BEYOND = 1 << 50  # the place after the newest item
AGAIN = 6  # the place of "this is sent again" among the arguments of an exchange


def new_request() -> str:
    """Names one call, so that its repetition is known as such."""
    return runtime.random_bytes(8).hex()


class RedisItems(Backend):
    """The verbs about items."""

    _client: RedisClient
    _lost_claims: LostClaims
    _wakeup_channels: wakeup.WakeupChannels

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        if len(items) == 1:
            item_id, data, max_retries, priority, *rest, task = items[0]
            if not any(rest):
                data = stored(data, task)
                self._client.run("push_one", pool, item_id, data, max_retries, priority, pool=pool)
                return [item_id]
        options: dict[Shared, int] = {}  # many items have the same
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
            chosen += (max_retries, priority, micros(delay), tenant or "", group or "")
            chosen.append(int(backlog))
        ids: list[str] = self._client.run("push", pool, len(options), *chosen, *values, pool=pool)
        return ids

    def exchange(
        self,
        pool: str,
        worker: WorkerRef | None = None,
        *,
        settlements: Sequence[model.Settlement] = (),
        start: ClaimRef | None = None,
        claim: int = 0,
        announced: bool = False,
    ) -> model.Exchange:
        request, number, again = self._lost_claims.request(pool, worker, claim)
        if number and worker is None:
            raise UnknownWorker("only a worker can claim: say which")
        worker_id, incarnation = ("", None) if worker is None else worker
        started_id, started_token = ("", "") if start is None else start
        values: list[str | int] = [
            *(pool, worker_id, "" if incarnation is None else incarnation, number, int(announced)),
            *(request, str(int(again)), started_id, started_token or ""),
            *settlement_fields(settlements),
        ]
        script = "exchange_marked" if self._client.is_mark_due() else "exchange"
        try:
            settled, was_started, runs, version = self._client.run(script, *values, again_at=AGAIN)
        except StoreUnavailable:
            self._lost_claims.keep(pool, worker, request, number)
            raise
        answer = model.Exchange.of(
            (
                tuple([digit == "1" for digit in settled]),
                was_started == 1,
                tuple([item for run in runs for item in handed_out(run, pool, worker_id)]),
                version,
            )
        )
        return self._lost_claims.answered(self, pool, worker, claim, answer) if again else answer

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        fraction = "" if progress is None else repr(progress)
        saved = self._client.run(
            "save", claim.item_id, claim.token or "", checkpoint or "", fraction, signed(note)
        )
        return bool(saved)

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return int(self._client.run("release", pool, worker_id, named(started)))

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        return int(self._client.run("steer", "cancel", pool, *item_ids))

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        return int(self._client.run("steer", "requeue", pool, *item_ids))

    def item(self, item_id: str) -> model.WorkItem:
        return item_of(self._client.run("item", item_id))

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        return [pool or None for pool in self._client.run("pools_of", *item_ids)]

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        items: list[model.WorkItem] = []
        place: int | None = 0
        while place is not None and len(items) < limit:
            values = (pool, status or "", limit - len(items), after or "", place)
            place, rows, _ = self._client.run("items", *values, "{}")
            items += [item_of(row) for row in rows]
            after = None
        return items

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        filters = {name: value for name, value in which.as_dict().items() if value is not None}
        for name in ("older_seconds", "newer_seconds"):
            if name in filters:
                filters[name] = micros(filters[name])
        values = (pool, which.status or "", limit, after or "", BEYOND if which.newest else 0)
        place, rows, last = self._client.run("items", *values, jsontext.dumps(filters))
        items = tuple(item_of(row) for row in rows)
        return model.Found(items=items, after=None if place is None else last)

    def counts(self, pool: str) -> model.Counts:
        return counts_of(self._client.run("counts", pool))

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        return wakeup.wait(self._client, self._wakeup_channels, pool, worker, seconds)


def digest(data: str, task: str | None) -> str:
    """The same for the same task and payloads that are equal as JSON."""
    import json

    return sha1(stored(json.dumps(json.loads(data), sort_keys=True), task).encode())


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


def named(started: Sequence[str] | None) -> str:
    return "null" if started is None else jsontext.dumps(list(started))
