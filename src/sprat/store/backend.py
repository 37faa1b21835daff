"""The verbs of a store: all that a backend has to provide, on one page.

Every verb is one atomic step, safe to repeat after a lost reply. A lost race is False, None or an
empty answer; an unknown id raises UnknownItem or UnknownWorker (both KeyError); a store that
cannot answer raises StoreUnavailable and has changed nothing. Backends get input that `pool.py`
and `workers.py` have checked, with payloads, results and checkpoints as JSON text.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

# The version of the verbs over HTTP, sent in the header `sprat-protocol`. A worker of
# version 1 sends no header; it would run the pool's function for jobs of every task.
PROTOCOL = "2"
# Not served: a transaction or a file descriptor does not travel; a file is compacted where it is.
LOCAL_VERBS = frozenset(("close", "push_joined", "settle_joined", "compact", "cancel_bell"))
NO_JOINING = "only a PostgreSQL store can join a transaction of yours: leave connection= out"


class WorkerRef(Record):
    """A worker, and the incarnation that speaks (None: whichever is current)."""

    worker_id: str
    incarnation: int | None = None


class ClaimRef(Record):
    """An item, and the token that proves the claim on it."""

    item_id: str
    token: str | None


def too_late(found: model.WorkerRecord, wanted: model.WorkerRegistration) -> model.WorkerRecord:
    """What a launched worker is told whose row is no longer `starting`: whoever took the
    reservation may ask again, anybody else has to leave."""
    if found.status in model.ENDED or (found.host, found.pid) == (wanted.host, wanted.pid):
        return found
    return found.replace(status=model.TERMINATED, reason="another process took this launch")


class Backend:
    """What `Store`, `WorkPool` and `Workers` call. Subclasses implement every verb."""

    # -- items ------------------------------------------------------------------------------

    def push(self, pool: str, items: Sequence[model.NewItem]) -> list[str]:
        """Store all items or none, durably; the ids, those of earlier pushes for known keys."""
        raise NotImplementedError

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
        """Settle claims, start an item claimed ahead, and claim up to `claim` more, in one step.

        The first item claimed is started and charged. The others are claimed ahead: uncharged
        until they are started or settled; `announced` promises a `start` before each of them.
        """
        raise NotImplementedError

    def push_joined(
        self, pool: str, items: Sequence[model.NewItem], connection: object
    ) -> list[str]:
        """As `push`, in the transaction of the caller's own connection; few stores can."""
        raise InvalidInput(NO_JOINING)

    def settle_joined(
        self, pool: str, settlements: Sequence[model.Settlement], connection: object
    ) -> tuple[bool, ...]:
        """Settle in the transaction of the caller's own connection; few stores can."""
        raise InvalidInput(NO_JOINING)

    def save(
        self,
        claim: ClaimRef,
        *,
        checkpoint: str | None = None,
        progress: float | None = None,
        note: str | None = None,
    ) -> bool:
        """Keep a checkpoint or progress for the holder of the claim; False when it was lost."""
        raise NotImplementedError

    def release(self, pool: str, worker_id: str, started: Sequence[str] | None = None) -> int:
        """Free a dead worker's items in this pool; `started` when somebody knows which had."""
        raise NotImplementedError

    def cancel(self, pool: str, item_ids: Sequence[str]) -> int:
        """End unfinished items unrun; a running one loses its claim. How many were cancelled."""
        raise NotImplementedError

    def requeue(self, pool: str, item_ids: Sequence[str]) -> int:
        """Make poisoned, cancelled and backlog items pending with fresh attempts. How many."""
        raise NotImplementedError

    def item(self, item_id: str) -> model.WorkItem:
        """One item, whatever its pool."""
        raise NotImplementedError

    def pools_of(self, item_ids: Sequence[str]) -> list[str | None]:
        """The pool of each of these items, None for an unknown one, without their payloads."""
        raise NotImplementedError

    def items(
        self, pool: str, status: str | None, limit: int, after: str | None
    ) -> list[model.WorkItem]:
        """Items in order of arrival, from the one after `after`."""
        raise NotImplementedError

    def find(
        self, pool: str, which: model.ItemFilter, limit: int, after: str | None
    ) -> model.Found:
        """Up to `limit` items that fit, from the one after `after`. One step of a search: it looks
        at a bounded number of items, and may find none before the end is reached."""
        raise NotImplementedError

    def counts(self, pool: str) -> model.Counts:
        """How many items are in each state, without visiting them."""
        raise NotImplementedError

    def wait(self, pool: str, worker: WorkerRef | None, seconds: float) -> bool:
        """Sleep until the pool has a ready item (True), or the worker is no longer active or
        the time is up (False)."""
        raise NotImplementedError

    # -- pools ------------------------------------------------------------------------------

    def pools(self) -> list[str]:
        """The names of all pools, sorted."""
        raise NotImplementedError

    def pool_state(self, pool: str) -> model.PoolState:
        """Settings and pause; those of an unknown pool are the defaults."""
        raise NotImplementedError

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        """Replace the settings (JSON text) if they still have this version (None: any)."""
        raise NotImplementedError

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        """Hand out no items for this long (None: until resumed; 0: resume now), and keep why."""
        raise NotImplementedError

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        """Hand out no items for at least this long; a longer pause stays, with its reason."""
        raise NotImplementedError

    def request_check(self, pool: str, max_workers: int) -> bool:
        """Ask for a scaling pass. True for the one who has to start it: work waits that nobody
        idle will take, the fleet may grow, and nobody else asked in the last few seconds. Also
        when all work is delayed and nobody is there, for somebody has to wait for it: once for
        each earlier due time."""
        raise NotImplementedError

    def begin_check(self, pool: str) -> None:
        """A pass begins: who asks from now on needs another one."""
        raise NotImplementedError

    def purge(self, pool: str, limit: int) -> int:
        """Delete up to `limit` finished items past their retention, and old history."""
        raise NotImplementedError

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        """Delete up to `limit` finished items of a pool and, when these are all, the pool: its
        settings, statistics, decisions and ended workers. True: nothing of it is left; False: more
        finished items are; None: nothing was done, it has unfinished items or live workers."""
        raise NotImplementedError

    # -- workers ----------------------------------------------------------------------------

    def register(self, worker: model.WorkerRegistration) -> model.WorkerRecord:
        """Make the worker active as a new incarnation, release what the old one held, and make the
        items of its pool ready that are parked for one of its tasks.

        A reserved worker whose launch was given up keeps its final status: it has to leave.
        """
        raise NotImplementedError

    def heartbeat(
        self, worker: WorkerRef, metadata: str | None, holding: Sequence[ClaimRef]
    ) -> model.Heartbeat:
        """Extend the lease of a live incarnation and say which of these claims are lost."""
        raise NotImplementedError

    def keep_alive(self, worker_ids: Sequence[str]) -> int:
        """Extend the leases of these workers, launches included, for a parent process that sees
        them alive. How many of them are live; the others are left as they are."""
        raise NotImplementedError

    def touch(self) -> None:
        """Note that the store works now, for a process that only waits: without such notes a quiet
        store looks like one that was away (see leases.py)."""
        raise NotImplementedError

    def lost(self, holding: Sequence[ClaimRef]) -> tuple[str, ...]:
        """Which of these claims no longer hold, by item id. Changes nothing."""
        raise NotImplementedError

    def cancel_bell(self, worker: WorkerRef) -> int | None:
        """A file descriptor that becomes readable when a claim of this worker was taken away;
        `lost` tells which, and silences it. None where the store has none: ask `lost` instead."""
        return None

    def update_status(
        self,
        worker: WorkerRef,
        status: str,
        *,
        reason: str | None = None,
        started: Sequence[str] | None = None,
    ) -> bool:
        """Move a worker forward. `terminated` hands its items back, `lost` releases them."""
        raise NotImplementedError

    def worker(self, worker_id: str) -> model.WorkerRecord | None:
        """One worker by its id; None when there is none."""
        raise NotImplementedError

    def workers(self, which: model.WorkerFilter) -> list[model.WorkerRecord]:
        """The workers that fit, oldest first."""
        raise NotImplementedError

    def reap(self, pool: str | None, threshold: float | None) -> model.Reaped:
        """Mark workers lost whose lease ended (or without a heartbeat for `threshold`), and
        launches past their deadline; release their items in the same step."""
        raise NotImplementedError

    # -- scaling ----------------------------------------------------------------------------

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        """Read what a scaling pass needs, at one moment; statistics over `window` seconds. With a
        group, of the items that need it and the workers that have it; with NO_GROUP of the items
        that need none, and of no workers."""
        raise NotImplementedError

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        """Keep the decision, its reservations and drains if nobody decided since `version`
        and the fleet stays within its maximum; None otherwise."""
        raise NotImplementedError

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        """The last decisions, newest first."""
        raise NotImplementedError

    def stats(self, pool: str, seconds: float) -> model.Stats:
        """What happened in the last `seconds`."""
        raise NotImplementedError

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        """What happened in the last `seconds`, in buckets, oldest first."""
        raise NotImplementedError

    def totals(self, pool: str) -> model.Totals:
        """All that happened in the pool so far: the same for every process that asks."""
        raise NotImplementedError

    # -- documents and rates ------------------------------------------------------------------

    def document(self, kind: str, name: str) -> model.Document | None:
        """One small record by its kind and name; None when there is none or it expired."""
        raise NotImplementedError

    def documents(self, kind: str, limit: int, after: str | None) -> list[model.Document]:
        """The records of a kind by name, from the one after `after`."""
        raise NotImplementedError

    def put(
        self, kind: str, name: str, body: str | None, version: int | None, seconds: float | None
    ) -> bool:
        """Keep the record (None: delete it) if it still has this version (0: does not exist;
        None: any). It expires after `seconds` (None: never); versions go on after an expiry
        or start again, but a put that expects 0 wins once."""
        raise NotImplementedError

    def take(self, name: str, amount: float, rate: float, burst: float) -> float:
        """Take tokens from the bucket of this name, which gains `rate` a second up to `burst`.
        0.0 when they were there; otherwise nothing is taken: the seconds until they will be."""
        raise NotImplementedError

    # -- the store itself -------------------------------------------------------------------

    def compact(self) -> tuple[int, int] | None:
        """Return the disk space of deleted items to the system; the bytes in use before and after.
        None where there is nothing to do, for the server sees to it."""
        return None

    def describe(self) -> dict[str, object]:
        """Facts for `sprat doctor`: kind, version, where, durability."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError
