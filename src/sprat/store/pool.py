"""WorkPool: one named pool of one store. Checks input, remembers claims, calls the backend."""

from __future__ import annotations

from sprat.core import jsontext, model, payload
from sprat.core.errors import InvalidInput, NotClaimedHere, UnknownItem
from sprat.store import claim_tokens
from sprat.store.backend import Backend, ClaimRef, WorkerRef

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    Item = model.WorkItem | str
    Worker = model.WorkerRecord | str

MAX_CLAIM = 1000


class WorkPool:
    """A named set of items. `complete` and `fail` take the claimed item, or its id when this
    process made the claim; passing a WorkerRecord instead of a worker's id also fences the
    worker's incarnation."""

    def __init__(
        self,
        backend: Backend,
        name: str,
        before_push: Callable[[str, Sequence[model.NewItem]], None] = lambda pool, items: None,
        after_push: Callable[[str], None] = lambda pool: None,
        after_configure: Callable[[str], None] = lambda pool: None,
        tokens: claim_tokens.ClaimTokens | None = None,
    ) -> None:
        self.name = payload.pool_name(name)
        self._backend = backend
        self._before_push = before_push
        self._after_push = after_push
        self._after_configure = after_configure
        self._tokens = tokens or claim_tokens.of_store(backend)
        self._known: tuple[Worker | None, WorkerRef | None] = (None, None)

    def __repr__(self) -> str:
        return f"WorkPool({self.name!r})"

    # -- pushing ----------------------------------------------------------------------------

    def push(
        self,
        data: Any,
        *,
        max_attempts: int | None = None,
        max_retries: int | None = None,
        priority: int = 0,
        delay: float = 0.0,
        tenant: str | None = None,
        group: str | None = None,
        key: str | None = None,
        backlog: bool = False,
        task: str | None = None,
        connection: object = None,
    ) -> str:
        """Store one item durably and return its id.

        It is started up to `max_attempts` times (default 3; `max_retries` is an alias).
        A higher priority goes first. `delay` seconds pass before it can be claimed. A `group`
        goes only to workers with that capability. The same `key` and payload give the same id,
        the same key with another payload raises KeyConflict. `backlog` parks it until requeued.
        `task` names the task that runs it; without one it is the pool's handler.
        A `connection` of yours (psycopg) makes it part of your own transaction.
        """
        item = payload.new_item(
            data,
            max_attempts=max_attempts,
            max_retries=max_retries,
            priority=priority,
            delay=delay,
            tenant=tenant,
            group=group,
            key=key,
            backlog=backlog,
            task=task,
        )
        return self.push_items([item], connection=connection)[0]

    def push_many(
        self,
        data: Iterable[Any],
        *,
        max_attempts: int | None = None,
        max_retries: int | None = None,
        priority: int = 0,
        delay: float = 0.0,
        tenant: str | None = None,
        group: str | None = None,
        backlog: bool = False,
        task: str | None = None,
        connection: object = None,
    ) -> list[str]:
        """Store many items with the same options, all or none, in one step."""
        first = payload.new_item(
            None,
            max_attempts=max_attempts,
            max_retries=max_retries,
            priority=priority,
            delay=delay,
            tenant=tenant,
            group=group,
            backlog=backlog,
            task=task,
        )
        return self.push_items(payload.many_like(first, payload.each(data)), connection=connection)

    def push_items(self, items: Sequence[model.NewItem], *, connection: object = None) -> list[str]:
        """Store items made with `payload.new_item`, each with options of its own."""
        if not items:
            return []
        self._before_push(self.name, items)
        if connection is not None:
            return self._backend.push_joined(self.name, items, connection)
        ids = self._backend.push(self.name, items)
        self._after_push(self.name)
        return ids

    def start_fleet(self) -> None:
        """Do what a push does when its item is stored: start workers, if the pool wants that.
        For those who pushed in a transaction of their own, once it is committed."""
        self._after_push(self.name)

    # -- claiming and settling --------------------------------------------------------------

    def claim(self, worker: Worker) -> model.WorkItem | None:
        """Take the best item for this worker, or None."""
        items = self.claim_many(worker, 1)
        return items[0] if items else None

    def claim_many(
        self, worker: Worker, n: int, *, announced: bool = False
    ) -> list[model.WorkItem]:
        """Take up to n items. All but the first are claimed ahead: if the worker dies before
        it settles them they go back uncharged. `announced`: `start` is called before each."""
        return list(self.exchange(worker, claim=n, announced=announced).items)

    def start(self, item: Item) -> bool:
        """Announce the start of an item claimed ahead; False when the claim was lost."""
        return self._backend.exchange(self.name, start=self._claim(item)).started

    def complete(
        self,
        item: Item,
        result: Any = None,
        *,
        seconds: float | None = None,
        connection: object = None,
    ) -> bool:
        """Store the result; False when the claim was lost. Repeating it is success again. A
        `connection` of yours (psycopg) makes it part of your own transaction."""
        settlement = self.completion(item, result, seconds=seconds)
        if connection is not None:
            return self._backend.settle_joined(self.name, [settlement], connection)[0]
        return self._settle(settlement)

    def fail(
        self,
        item: Item,
        error: object = None,
        *,
        transient: bool = False,
        poison: bool = False,
        delay: float = 0.0,
    ) -> bool:
        """Store the error; the item is pending again (after `delay`) or out of attempts.
        `transient` gives the attempt back, `poison` allows no further one."""
        return self._settle(
            self.failure(item, error, transient=transient, poison=poison, delay=delay)
        )

    def hand_back(self, item: Item) -> bool:
        """Give an unfinished item back without charging it."""
        return self._settle(self._settlement(item, model.HAND_BACK))

    def settle_many(self, settlements: Sequence[model.Settlement]) -> tuple[bool, ...]:
        """Settle many claims in one step; a flag each, False for a lost claim."""
        return self._backend.exchange(self.name, settlements=settlements).settled

    def exchange(
        self,
        worker: Worker,
        *,
        settlements: Sequence[model.Settlement] = (),
        start: Item | None = None,
        claim: int = 1,
        announced: bool = False,
    ) -> model.Exchange:
        """Settle what is finished, start an item claimed ahead and claim the next, in one
        step: one durable write a job."""
        if type(claim) is not int or not 0 <= claim <= MAX_CLAIM:
            payload.whole(claim, "the number of items to claim", 0, MAX_CLAIM)
        known, ref = self._known
        if ref is None or known is not worker:
            ref = worker_ref(worker)
            self._known = worker, ref  # in one step: threads may share this pool
        answer = self._backend.exchange(
            self.name,
            ref,
            settlements=settlements,
            start=None if start is None else self._claim(start),
            claim=claim,
            announced=announced,
        )
        if answer.items:
            self._tokens.remember(answer.items)
        return answer

    def completion(
        self, item: Item, result: Any = None, *, seconds: float | None = None
    ) -> model.Settlement:
        """A settlement for `settle_many` and `exchange`: the job is done."""
        text = None if result is None else payload.encode(result, "result")
        if seconds is not None:
            payload.seconds(seconds, "the run time")
        token: str | None
        if type(item) is model.WorkItem:
            item_id, token = item.id, item.token
        else:
            item_id, token = self._claim(item)
        return model.Settlement.of((item_id, token, model.COMPLETE, text, None, 0.0, seconds))

    def failure(
        self,
        item: Item,
        error: object = None,
        *,
        transient: bool = False,
        poison: bool = False,
        delay: float = 0.0,
        seconds: float | None = None,
    ) -> model.Settlement:
        """A settlement for `settle_many` and `exchange`: the job failed."""
        if transient and poison:
            raise InvalidInput("a failure is transient or for good, not both")
        outcome = model.TRANSIENT if transient else model.POISON if poison else model.FAIL
        if seconds is not None:
            payload.seconds(seconds, "the run time")
        return self._settlement(
            item,
            outcome,
            error=payload.error_text(error),
            delay=payload.seconds(delay, "delay"),
            seconds=seconds,
        )

    def _settlement(
        self,
        item: Item,
        outcome: str,
        result: str | None = None,
        error: str | None = None,
        delay: float = 0.0,
        seconds: float | None = None,
    ) -> model.Settlement:
        item_id, token = self._claim(item)
        return model.Settlement.of((item_id, token, outcome, result, error, delay, seconds))

    def _settle(self, settlement: model.Settlement) -> bool:
        return self.settle_many([settlement])[0]

    def _claim(self, item: Item) -> ClaimRef:
        if not isinstance(item, str):
            return ClaimRef.of((item.id, item.token))
        token = self._tokens.token(item)
        if token is None:
            raise NotClaimedHere(
                f"this process has not claimed the item {self.get(item).id!r}: "
                "pass the item that `claim` returned, or settle it in the process that claimed it"
            )
        return ClaimRef.of((item, token))

    # -- while a job runs -------------------------------------------------------------------

    def save_checkpoint(self, item: Item, data: Any) -> bool:
        """Keep data for the item's next attempt; False when the claim was lost."""
        return self._backend.save(self._claim(item), checkpoint=payload.encode(data, "checkpoint"))

    def load_checkpoint(self, item: Item) -> Any:
        """What the last attempt saved, or None."""
        return self.get(item).checkpoint

    def report_progress(self, item: Item, fraction: float, note: str | None = None) -> bool:
        """Show how far the job is, from 0 to 1; False when the claim was lost."""
        fraction = payload.seconds(fraction, "progress", 1.0)
        return self._backend.save(
            self._claim(item), progress=fraction, note=payload.error_text(note)
        )

    def release_by_worker(self, worker_id: str, *, started: Sequence[str] | None = None) -> int:
        """Free the items of a worker that is known to be dead; how many. `started` names those
        that had started, where somebody watched: the others go back with no doubt on them."""
        return self._backend.release(self.name, payload.worker_id(worker_id), started)

    # -- looking ----------------------------------------------------------------------------

    def size(self) -> int:
        """How many items are pending."""
        return self.counts().pending

    def counts(self) -> model.Counts:
        return self._backend.counts(self.name)

    def get(self, item: Item) -> model.WorkItem:
        found = self._backend.item(item if isinstance(item, str) else item.id)
        if found.pool != self.name:
            raise UnknownItem(f"pool {self.name!r} has no item {found.id!r}")
        return found

    def items(
        self,
        status: str | None = None,
        *,
        limit: int = 100,
        after: str | None = None,
        error: str | None = None,
        key: str | None = None,
        tenant: str | None = None,
        older: float | None = None,
        newer: float | None = None,
        newest: bool = False,
    ) -> list[model.WorkItem]:
        """Items in order of arrival, or newest first; `after` is the last id of the page before.

        `status` is a word of either kind (`failed` or `poisoned`), `error` a text within the error;
        `older` and `newer` are seconds since the push. A search by them reads the pool (with a
        status other than `done`, the items in it) from `after` on until it has found `limit`."""
        from sprat.core import item_filter

        payload.whole(limit, "limit", 1, 10_000)
        ages = {"older_seconds": older, "newer_seconds": newer}
        wanted = item_filter.which(
            status, error=error, key=key, tenant=tenant, newest=newest, **ages
        )
        if item_filter.is_plain(wanted):
            return self._backend.items(self.name, wanted.status, limit, after)
        found: list[model.WorkItem] = []
        while True:
            step = self._backend.find(self.name, wanted, limit - len(found), after)
            found += step.items
            after = step.after
            if after is None or len(found) == limit:
                return found

    def wait(self, worker: Worker | None = None, *, seconds: float = 1.0) -> bool:
        """Sleep until there is work (True), the worker is told to leave or time is up."""
        ref = None if worker is None else worker_ref(worker)
        return self._backend.wait(self.name, ref, payload.seconds(seconds, "the wait"))

    def stats(self, seconds: float = 600.0) -> model.Stats:
        return self._backend.stats(self.name, payload.seconds(seconds, "the window"))

    def history(self, seconds: float = 3600.0) -> list[model.StatsBucket]:
        return self._backend.history(self.name, payload.seconds(seconds, "the window"))

    def totals(self) -> model.Totals:
        """All that the pool has done so far, also what is too old for `history`."""
        return self._backend.totals(self.name)

    # -- steering ---------------------------------------------------------------------------

    def cancel(self, *item_ids: str) -> int:
        """End unfinished items; how many were. A running one loses its claim."""
        return self._backend.cancel(self.name, item_ids)

    def requeue(self, *item_ids: str) -> int:
        """Make poisoned, cancelled and backlog items pending again; how many were."""
        requeued = self._backend.requeue(self.name, item_ids)
        if requeued:
            self._after_push(self.name)
        return requeued

    def pause(self, seconds: float | None = None, *, reason: str | None = None) -> None:
        """Hand out no items for this long, or until `resume`; `status` shows the reason."""
        limit = None if seconds is None else payload.seconds(seconds, "the pause")
        self._backend.pause(self.name, limit, payload.error_text(reason))

    def hold_off(self, seconds: float, *, reason: str | None = None) -> None:
        """Hand out no items for at least this long: a longer pause stays as it is."""
        limit = payload.seconds(seconds, "the pause")
        self._backend.hold_off(self.name, limit, payload.error_text(reason))

    def resume(self) -> None:
        self._backend.pause(self.name, 0.0)
        self._after_push(self.name)

    def state(self) -> model.PoolState:
        return self._backend.pool_state(self.name)

    def configure(self, *, if_version: int | None = None, **changes: Any) -> bool:
        """Change settings; False when they no longer have the version that was asked for."""
        from sprat.config import settings

        state = self.state()
        after = settings.changed(state.settings, changes)
        expected = state.version if if_version is None else if_version
        changed = self._backend.configure(self.name, jsontext.dumps(after.as_dict()), expected)
        self._after_configure(self.name)
        if changed or if_version is not None:
            return changed
        return self.configure(**changes)  # somebody else changed them in between: merge again

    def purge(self, limit: int = 10_000) -> int:
        """Delete finished items that are past their retention; how many."""
        return self._backend.purge(self.name, limit)

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, group: str | None = None, *, window: float = 600.0) -> model.Snapshot:
        """What a scaling pass needs to know, of the whole pool or of one group; NO_GROUP: of the
        work that anybody may do, and of no workers."""
        if group != model.NO_GROUP:
            payload.label(group, "group")
        return self._backend.observe(self.name, group, window)

    def record(self, decision: model.Decision, *, version: int) -> model.RecordedDecision | None:
        """Keep a decision and make its reservations, unless somebody decided first (None)."""
        payload.direction(decision.direction)
        return self._backend.record(version, decision.replace(pool=self.name))

    def decisions(
        self, group: str | None = None, *, limit: int = 20
    ) -> list[model.RecordedDecision]:
        return self._backend.decisions(self.name, group, limit)


def worker_ref(worker: Worker) -> WorkerRef:
    if isinstance(worker, model.WorkerRecord):
        return WorkerRef.of((worker.worker_id, worker.incarnation))
    return WorkerRef(worker_id=payload.worker_id(worker))
