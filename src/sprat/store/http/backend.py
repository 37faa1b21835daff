"""HttpBackend: the verbs of `sprat.store.backend`, each one request to an orchestrator.

A verb is sent with its arguments by name and answered as its annotation says; only verbs that need
more than one request, or remember something, are written out. A worker that registered through this
object gets a secret that goes with its later requests. A lost request is sent again, for every verb
may be repeated. A claim whose answer was lost needs one more step: the items that it may have
claimed are handed back first (`recover`).
"""

from __future__ import annotations

from sprat.core import jsontext, model, payload
from sprat.core.errors import StoreUnavailable, UnknownItem
from sprat.core.record import plain
from sprat.core.runtime import runtime
from sprat.store.backend import LOCAL_VERBS, Backend, ClaimRef, WorkerRef
from sprat.store.http import records
from sprat.store.http.address import ServerAddress
from sprat.store.http.connection import Connections

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

_SEQUENCES = (tuple, list)  # records are tuples
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

    def _call(self, verb: str, arguments: dict[str, Any], **options: Any) -> Any:
        """The answer of a verb; a long list comes in several parts."""
        reply = self._reply(verb, arguments, **options)
        answer = reply["answer"]
        while reply.get("next") is not None and len(answer) < arguments["limit"]:
            left = arguments["limit"] - len(answer)
            reply = self._reply(verb, {**arguments, "limit": left, "after": reply["next"]})
            answer += reply["answer"]
        return records.answer(verb, answer)

    def _reply(self, verb: str, arguments: dict[str, Any], **options: Any) -> Any:
        """What the server sends for one request, which has the secret of a worker that speaks."""
        worker = arguments.get("worker")
        secret = self._secrets.get(tuple(worker)) if isinstance(worker, WorkerRef) else None
        sent = {
            name: plain(value) if isinstance(value, _SEQUENCES) else value
            for name, value in arguments.items()
        }
        path = f"/api/v1/store/{verb}"
        return self._connections.call(path, jsontext.dumps(sent), secret, **options)

    # -- claims -----------------------------------------------------------------------------

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
            second = self.exchange(
                pool, worker, settlements=rest, start=start, claim=claim, announced=announced
            )
            return second.replace(settled=settled + second.settled)
        arguments: dict[str, Any] = {
            "pool": pool,
            "worker": worker,
            "settlements": settlements,
            "start": start,
            "claim": claim,
            "announced": announced,
        }
        if (pool, worker) in self._unsure:
            self._recover(pool, worker, 1)
            self._unsure.discard((pool, worker))
        try:
            answer: model.Exchange = self._call(
                "exchange", arguments, on_lost=lambda: self._recover(pool, worker, claim)
            )
        except StoreUnavailable:
            if claim:
                self._unsure.add((pool, worker))
            raise
        self._note(None if worker is None else worker.worker_id, settlements, answer.items)
        return answer

    def _recover(self, pool: str, worker: WorkerRef | None, claim: int) -> None:
        """The answer to a claim was lost: have its items handed back, whatever they are."""
        if worker is None or not claim:
            return
        known = list(self._held.get(worker.worker_id, ()))
        self._reply("recover", {"pool": pool, "worker": worker, "known": known})

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

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        end = runtime.monotonic() + seconds
        while True:
            began = runtime.monotonic()
            left = max(0.0, min(end - began, ONE_WAIT_SECONDS))
            arguments = {"pool": pool, "worker": worker, "seconds": left}
            if self._call("wait", arguments, extra_seconds=left):
                return True
            now = runtime.monotonic()
            if now >= end or now < began + left:
                return False  # the time is up, or it was no good waiting

    # -- many ids: in parts, as many as a server takes in one request ---------------------------

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._change("cancel", pool, item_ids)

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        return self._change("requeue", pool, item_ids)

    def _change(self, verb: str, pool: str, item_ids: Sequence[str]) -> int:
        parts = _in_parts(item_ids)
        if len(parts) > 1:  # an unknown id in the second part must leave the first as it is
            for item_id, pool_of in zip(item_ids, self.pools_of(item_ids), strict=True):
                if pool_of is None:
                    raise UnknownItem(f"the store has no item {item_id!r}")
        return sum(self._call(verb, {"pool": pool, "item_ids": part}) for part in parts)

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        parts = _in_parts(item_ids)
        return [pool for part in parts for pool in self._call("pools_of", {"item_ids": part})]

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        parts = _in_parts(worker_ids) or [()]  # none is a `touch`, as with other stores
        return sum(self._call("keep_alive", {"worker_ids": part}) for part in parts)

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        parts = _in_parts(holding)
        return tuple(item_id for part in parts for item_id in self._call("lost", {"holding": part}))

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        first, rest = holding[: payload.MAX_IDS], holding[payload.MAX_IDS :]
        arguments = {"worker": worker, "metadata": metadata, "holding": first}
        answer: model.Heartbeat = self._call("heartbeat", arguments)
        return answer.replace(lost=(*answer.lost, *self.lost(rest))) if rest else answer

    # -- the others that are not one plain request ----------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        reply = self._reply("register", {"worker": worker.replace(started_at=None)})
        registered: model.WorkerRecord = records.answer("register", reply["answer"])
        self._secrets[registered.worker_id, None] = reply["secret"]
        self._secrets[registered.worker_id, registered.incarnation] = reply["secret"]
        self._held.pop(registered.worker_id, None)
        return registered

    def describe(self) -> dict[str, object]:
        behind = self._call("describe", {})
        passed_on = ("synced", "clock_ahead_seconds")
        facts: dict[str, object] = {name: behind[name] for name in passed_on if name in behind}
        where = self._connections.address.shown
        return {"kind": "http", "where": where, "behind": behind["kind"], **facts}

    def close(self) -> None:
        self._connections.close()


def _in_parts(values: Sequence[Any]) -> list[Sequence[Any]]:
    steps = range(0, len(values), payload.MAX_IDS)
    return [values[step : step + payload.MAX_IDS] for step in steps]


def _over_http(verb: Any) -> Callable[..., Any]:
    """A method that calls this verb with its arguments by name."""
    name = verb.__name__
    names = verb.__code__.co_varnames[1 : verb.__code__.co_argcount]

    def call(self: HttpBackend, *values: Any, **arguments: Any) -> Any:
        arguments.update(zip(names, values, strict=False))
        return self._call(name, arguments)

    return call


for _name, _verb in vars(Backend).items():
    if not _name.startswith("_") and _name not in {*LOCAL_VERBS, *vars(HttpBackend)}:
        setattr(HttpBackend, _name, _over_http(_verb))
