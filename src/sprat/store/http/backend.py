"""HttpBackend: the verbs of `sprat.store.backend`, each one request to an orchestrator.

A worker that registered through this object gets a secret that goes with its later requests. What
is lost on the way is sent again, for every verb may be repeated; only a claim whose answer was lost
needs a step more: what was claimed without our knowing is handed back first (`recover`).
"""

from __future__ import annotations

import time

from sprat.core import jsontext, model, payload
from sprat.core.errors import StoreUnavailable, UnknownItem
from sprat.store.backend import Backend, ClaimRef, WorkerRef
from sprat.store.http import records
from sprat.store.http.address import ServerAddress
from sprat.store.http.connection import Connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

ONE_WAIT_SECONDS = 20.0  # of one long poll; a longer wait asks again


class HttpBackend(Backend):
    """A store behind an orchestrator."""

    def __init__(self, address: ServerAddress) -> None:
        self._connections = Connections(address)
        # Of the workers that registered here, by incarnation (None: the last).
        self._secrets: dict[tuple[str, int | None], str] = {}
        self._held: dict[str, dict[str, None]] = {}  # item ids that each of them claimed
        # Claims whose answer never came: the server may hold items for the worker by now.
        self._unsure: set[tuple[str, WorkerRef | None]] = set()

    def _call(self, verb: str, speaker: WorkerRef | None = None, /, **arguments: Any) -> Any:
        """Call a verb; for a worker, `speaker`, with its secret."""
        secret = self._secret(speaker)
        body = jsontext.dumps(arguments)
        return self._connections.call(f"/api/v1/store/{verb}", body, secret)["answer"]

    def _secret(self, speaker: WorkerRef | None) -> str | None:
        return None if speaker is None else self._secrets.get(tuple(speaker))

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        ids: list[str] = self._call("push", pool=pool, items=[item.as_dict() for item in items])
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
        if len(settlements) > payload.MAX_IDS:
            first, rest = settlements[: payload.MAX_IDS], settlements[payload.MAX_IDS :]
            settled = self.exchange(pool, settlements=first).settled
            answer = self.exchange(
                pool, worker, settlements=rest, start=start, claim=claim, announced=announced
            )
            return answer.replace(settled=settled + answer.settled)
        asked = {
            "pool": pool,
            "worker": None if worker is None else worker.as_dict(),
            "settlements": [one.as_dict() for one in settlements],
            "start": None if start is None else start.as_dict(),
            "claim": claim,
            "announced": announced,
        }
        if (pool, worker) in self._unsure:
            self._recover(pool, worker, 1)
            self._unsure.discard((pool, worker))
        try:
            told = self._connections.call(
                "/api/v1/store/exchange",
                jsontext.dumps(asked),
                self._secret(worker),
                on_lost=lambda: self._recover(pool, worker, claim),
            )
        except StoreUnavailable:
            if claim:
                self._unsure.add((pool, worker))
            raise
        answer = records.exchange(told["answer"])
        self._note(None if worker is None else worker.worker_id, settlements, answer.items)
        return answer

    def _recover(self, pool: str, worker: WorkerRef | None, claim: int) -> None:
        """The answer to a claim was lost: whatever it was, have it handed back."""
        if worker is None or not claim:
            return
        known = list(self._held.get(worker.worker_id, ()))
        self._call("recover", worker, pool=pool, worker=worker.as_dict(), known=known)

    def _note(
        self,
        worker_id: str | None,
        settlements: Sequence[model.Settlement],
        items: Sequence[model.WorkItem],
    ) -> None:
        """Remember what each worker holds."""
        for settled in settlements:
            for held in self._held.values():
                held.pop(settled.item_id, None)
        if worker_id is not None and items:
            self._held.setdefault(worker_id, {}).update(dict.fromkeys(item.id for item in items))

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        return bool(
            self._call(
                "save",
                claim=claim.as_dict(),
                checkpoint=checkpoint,
                progress=progress,
                note=note,
            )
        )

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        return int(self._call("release", pool=pool, worker_id=worker_id, started=started))

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._steer("cancel", pool, item_ids)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._steer("requeue", pool, item_ids)

    def _steer(self, verb: str, pool: str, item_ids: Sequence[str]) -> int:
        parts = _in_parts(item_ids)
        if len(parts) > 1:  # an unknown id in the second part must leave the first as it is
            for item_id, found in zip(item_ids, self.pools_of(item_ids), strict=True):
                if found is None:
                    raise UnknownItem(f"the store has no item {item_id!r}")
        return sum(int(self._call(verb, pool=pool, item_ids=ids)) for ids in parts)

    def item(self, item_id: str) -> model.WorkItem:
        return records.item(self._call("item", item_id=item_id))

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        return [
            pool for some in _in_parts(item_ids) for pool in self._call("pools_of", item_ids=some)
        ]

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        found = self._connections.listed("items", limit, after, pool=pool, status=status)
        return [records.item(one) for one in found]

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        return records.found(
            self._call("find", pool=pool, which=which.as_dict(), limit=limit, after=after)
        )

    def counts(self, pool: str) -> model.Counts:
        return records.record(model.Counts, self._call("counts", pool=pool))

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        end = time.monotonic() + seconds
        ref = None if worker is None else worker.as_dict()
        while True:
            asked_at = time.monotonic()
            left = max(0.0, min(end - asked_at, ONE_WAIT_SECONDS))
            told = self._connections.call(
                "/api/v1/store/wait",
                jsontext.dumps({"pool": pool, "worker": ref, "seconds": left}),
                self._secret(worker),
                extra_seconds=left,
            )
            if told["answer"]:
                return True
            now = time.monotonic()
            if now >= end or now < asked_at + left:
                return False  # the time is up, or it was no good waiting

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        return list(self._call("pools"))

    def pool_state(self, pool: str) -> model.PoolState:
        return records.pool_state(self._call("pool_state", pool=pool))

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        return bool(self._call("configure", pool=pool, settings=settings, version=version))

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        self._call("pause", pool=pool, seconds=seconds, reason=reason)

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        self._call("hold_off", pool=pool, seconds=seconds, reason=reason)

    def request_check(self, pool: str, max_workers: int) -> bool:
        return bool(self._call("request_check", pool=pool, max_workers=max_workers))

    def begin_check(self, pool: str) -> None:
        self._call("begin_check", pool=pool)

    def purge(self, pool: str, limit: int) -> int:
        return int(self._call("purge", pool=pool, limit=limit))

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        answer: bool | None = self._call("delete_pool", pool=pool, limit=limit)
        return answer

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        body = jsontext.dumps({"worker": {**worker.as_dict(), "started_at": None}})
        answer = self._connections.call("/api/v1/store/register", body, None)
        registered = records.worker(answer["answer"])
        self._secrets[registered.worker_id, None] = answer["secret"]
        self._secrets[registered.worker_id, registered.incarnation] = answer["secret"]
        self._held.pop(registered.worker_id, None)
        return registered

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        answer = self._call(
            "heartbeat",
            worker,
            worker=worker.as_dict(),
            metadata=metadata,
            holding=[claim.as_dict() for claim in holding[: payload.MAX_IDS]],
        )
        lost = (*answer["lost"], *self.lost(holding[payload.MAX_IDS :]))
        return model.Heartbeat(status=answer["status"], lost=lost)

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        some = _in_parts(worker_ids) or [()]  # without any it is a `touch`, as with other stores
        return sum(int(self._call("keep_alive", worker_ids=ids)) for ids in some)

    def touch(self) -> None:
        self._call("touch")

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        some = _in_parts([claim.as_dict() for claim in holding])
        return tuple(one for part in some for one in self._call("lost", holding=part))

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        return bool(
            self._call(
                "update_status",
                worker,
                worker=worker.as_dict(),
                status=status,
                reason=reason,
                started=started,
            )
        )

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        found = self._call("worker", worker_id=worker_id)
        return None if found is None else records.worker(found)

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        return [records.worker(one) for one in self._call("workers", which=which.as_dict())]

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        answer = self._call("reap", pool=pool, threshold=threshold)
        return records.record(model.Reaped, answer)

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        return records.snapshot(self._call("observe", pool=pool, group=group, window=window))

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        made = self._call("record", version=version, decision=decision.as_dict())
        return None if made is None else records.record(model.RecordedDecision, made)

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        found = self._call("decisions", pool=pool, group=group, limit=limit)
        return [records.record(model.RecordedDecision, one) for one in found]

    def stats(self, pool: str, seconds: float) -> model.Stats:
        return records.record(model.Stats, self._call("stats", pool=pool, seconds=seconds))

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        found = self._call("history", pool=pool, seconds=seconds)
        return [records.bucket(one) for one in found]

    def totals(self, pool: str) -> model.Totals:
        return records.totals(self._call("totals", pool=pool))

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        found = self._call("document", kind=kind, name=name)
        return None if found is None else records.record(model.Document, found)

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        found = self._connections.listed("documents", limit, after, kind=kind)
        return [records.record(model.Document, one) for one in found]

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        return bool(
            self._call("put", kind=kind, name=name, body=body, version=version, seconds=seconds)
        )

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        return float(self._call("take", name=name, amount=amount, rate=rate, burst=burst))

    # -- the store itself -------------------------------------------------------------------

    def describe(self) -> dict[str, object]:
        found: dict[str, object] = self._call("describe")
        where = self._connections.address.shown
        passed_on = ("synced", "clock_ahead_seconds")
        facts: dict[str, object] = {name: found[name] for name in passed_on if name in found}
        return {"kind": "http", "where": where, "behind": found["kind"], **facts}

    def close(self) -> None:
        self._connections.close()


def _in_parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    """As many as a server takes in one request, at a time."""
    steps = range(0, len(values), payload.MAX_IDS)
    return [values[step : step + payload.MAX_IDS] for step in steps]
