"""The records that travel between a store and its users, and the words for their states.

Times are seconds since 1970 by the store's clock; durations are seconds.
"""

from __future__ import annotations

from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

# An item's states. A pending item with a later run_at is delayed; backlog is parked by a person.
PENDING = "pending"
CLAIMED = "claimed"
DONE = "done"
POISONED = "poisoned"
CANCELLED = "cancelled"
BACKLOG = "backlog"
ITEM_STATUSES = (PENDING, CLAIMED, DONE, POISONED, CANCELLED, BACKLOG)
FINISHED = (DONE, POISONED, CANCELLED)

# A worker's states, in the only order in which they are passed through.
STARTING = "starting"
ACTIVE = "active"
TERMINATING = "terminating"
TERMINATED = "terminated"
LOST = "lost"
WORKER_STATUSES = (STARTING, ACTIVE, TERMINATING, TERMINATED, LOST)
LIVE = (STARTING, ACTIVE, TERMINATING)
SUSPENDED = "suspended"  # in the metadata of a worker, with True: it takes no work for now
ENDED = (TERMINATED, LOST)

# What a worker may say about an item that it holds.
COMPLETE = "complete"
FAIL = "fail"  # costs the attempt
TRANSIENT = "transient"  # throttled, timed out: the attempt is given back
POISON = "poison"  # failed for good: no further attempt
HAND_BACK = "hand_back"  # not done, through no fault of the job: the attempt is given back
PARK = "park"  # the worker does not know the task: given back, held until a worker does
OUTCOMES = (COMPLETE, FAIL, TRANSIENT, POISON, HAND_BACK, PARK)

# What a scaling decision does to a fleet.
UP = "up"
DOWN = "down"
HOLD = "hold"
DIRECTIONS = (UP, DOWN, HOLD)

# What happens in a pool that a trigger may wait for.
WORK_ADDED = "work_added"
WORKER_DONE = "worker_done"  # it left because there was no work for it, or it had done its share
WORKER_LOST = "worker_lost"
POOL_EMPTY = "pool_empty"  # the last item was settled: none waits, none runs
EVENTS = (WORK_ADDED, WORKER_DONE, WORKER_LOST, POOL_EMPTY)

NO_GROUP = ""  # to observe only the work without a group
POLICY_NOTES = "scaling"  # the kind of the documents that policies keep notes in

HEARTBEAT_SECONDS = 5.0
LEASE_SECONDS = 2 * HEARTBEAT_SECONDS  # a worker that misses two heartbeats is stale
SHORTEST_RESERVATION_SECONDS = 2.0  # Python has to start first
MAX_RETRIES = 3
MAX_TRANSIENT = 10


class WorkItem(Record):
    """One stored piece of work. `token` and `epoch` prove a claim; `attempts` counts its starts."""

    id: str
    pool: str
    data: Any
    status: str = PENDING
    attempts: int = 0
    max_retries: int = MAX_RETRIES
    priority: int = 0
    tenant: str | None = None
    group: str | None = None
    key: str | None = None
    claimed_by: str | None = None
    epoch: int = 0
    token: str | None = None
    checkpoint: Any = None
    progress: float | None = None
    progress_note: str | None = None
    result: Any = None
    error: str | None = None
    created_at: float = 0.0
    run_at: float | None = None
    claimed_at: float | None = None
    finished_at: float | None = None
    given_back: int = 0  # attempts that were not charged
    task: str | None = None  # the task to run; None: the pool's handler, command or machine
    transients: int = 0  # transient failures so far, bounded by the pool's max_transient
    hold: str | None = None  # why a pending item waits beyond its delay (an unknown task)


class ItemFilter(Record):
    """Which items to find; what is None is not looked at. See item_filter.py."""

    status: str | None = None
    delayed: bool | None = None  # of pending items: those that wait for their time, or the others
    prefix: str | None = None  # of the id
    key: str | None = None
    tenant: str | None = None
    error: str | None = None  # a text within the error
    older_seconds: float | None = None  # since the push, at least
    newer_seconds: float | None = None  # since the push, at most
    newest: bool = False  # newest first


class Found(Record):
    """One step of a search: items, and the id to go on after (None: there are no more)."""

    items: tuple[WorkItem, ...] = ()
    after: str | None = None


class NewItem(Record):
    """An item on its way into a pool; `data` is JSON text, `id` makes the push safe to repeat."""

    id: str
    data: str
    max_retries: int = MAX_RETRIES
    priority: int = 0
    delay: float = 0.0
    tenant: str | None = None
    group: str | None = None
    key: str | None = None
    backlog: bool = False
    task: str | None = None


class Settlement(Record):
    """What became of one claim; `result` is JSON text, `seconds` how long the job ran."""

    item_id: str
    token: str | None
    outcome: str
    result: str | None = None
    error: str | None = None
    delay: float = 0.0
    seconds: float | None = None


class Exchange(Record):
    """The answer to settle-start-claim in one step: one flag per settlement, the next items, and
    the version of the pool's settings where the exchange asked for items."""

    settled: tuple[bool, ...] = ()
    started: bool = True
    items: tuple[WorkItem, ...] = ()
    version: int | None = None


class Document(Record):
    """A small record that a part of sprat keeps: JSON text, and a version that counts changes."""

    kind: str
    name: str
    body: str
    version: int = 1


class Counts(Record):
    """How many items of a pool are in each state. `pending` includes the delayed ones."""

    pending: int = 0
    delayed: int = 0
    backlog: int = 0
    claimed: int = 0
    done: int = 0
    poisoned: int = 0
    cancelled: int = 0

    @property
    def ready(self) -> int:
        return self.pending - self.delayed

    @property
    def total(self) -> int:
        live = self.pending + self.backlog + self.claimed
        return live + self.done + self.poisoned + self.cancelled


class PoolSettings(Record):
    """How a pool is worked on: kept in the store, named as in sprat.yml, checked by settings.py."""

    handler: str | None = None  # "module:function", called with the payload
    command: Sequence[str] | None = None  # a program: JSON on stdin, JSON on stdout
    machine: str | None = None  # a YAML machine: the payload is its input, its output the result
    machines: Mapping[str, str] = {}  # names that machines call each other by, and their files
    tasks: Mapping[str, Mapping[str, str]] = {}  # by name: handler, file and host; set by a push
    directory: str | None = None  # where the handler is imported and the command runs
    environment: Sequence[str] = ()  # names of the variables that workers get besides the usual
    isolation: str = "process"  # each job in a child of its own, or "none": in the worker
    claim_ahead: int = 1  # tiny jobs that share one write, with isolation none
    timeout_seconds: float | None = None  # of one job; it is stopped and has failed

    retry_base_seconds: float = 0.4  # before the second attempt, doubled for each one after it
    retry_cap_seconds: float = 300.0
    max_transient: int | None = (
        MAX_TRANSIENT  # uncharged transient failures per job; None: no limit
    )
    on_lost_contact: str = "continue"  # or "stop": the job ends when the store cannot be reached

    launcher: str = "process"  # where workers are started: one of launchers/*/options.py,
    launcher_options: Mapping[str, Any] = {}  # its own settings
    policy: str = "slo"  # how many workers there should be: one of scaling/policies.py
    policy_options: Mapping[str, Any] = {}  # its own settings
    min_workers: int = 0
    max_workers: int = 10
    max_jobs: int = 0  # a worker leaves after this many; 0: when there is no work left
    idle_seconds: float = 1.0  # a worker leaves after this long without work
    heartbeat_seconds: float = HEARTBEAT_SECONDS  # two missed ones, and it is taken for dead
    start_deadline_seconds: float = 60.0  # a launch that has not registered by then is lost
    start_on_push: bool = False  # a push starts a scaling pass

    tenant_limit: int | None = None  # running items per tenant
    tenant_limits: Mapping[str, int] = {}  # exceptions to it, by tenant
    keep_done_seconds: float | None = 7 * 86400.0  # None keeps them for ever
    keep_poisoned_seconds: float | None = None
    keep_cancelled_seconds: float | None = 7 * 86400.0
    events: Mapping[str, Sequence[str]] = {}  # the names of the triggers that wait for each

    @property
    def has_processor(self) -> bool:
        """Whether the pool says what its workers run: tasks always come with a handler."""
        return (self.handler, self.command, self.machine) != (None, None, None)

    @property
    def reservation_seconds(self) -> float:
        """How long a launch counts without a sign of life. A forked worker's parent gives signs of
        life for it, so a dead parent is noticed as soon as a dead worker."""
        if self.launcher != "process":
            return self.start_deadline_seconds
        lease = max(2 * self.heartbeat_seconds, SHORTEST_RESERVATION_SECONDS)
        return min(self.start_deadline_seconds, lease)


class PoolState(Record):
    """A pool as stored: its settings with their version, and whether it is paused."""

    name: str
    settings: PoolSettings
    version: int = 0
    paused: bool = False
    paused_seconds: float | None = None  # how long the pause still lasts; None: until resumed
    pause_reason: str | None = None


class WorkerRegistration(Record):
    """What a worker says about itself. `reserved` ties it to a launch that a checker recorded."""

    worker_id: str
    pool_id: str | None = None
    host: str | None = None
    pid: int | None = None
    capabilities: Sequence[str] = ()
    lease_seconds: float = LEASE_SECONDS
    metadata: Mapping[str, Any] = {}
    reserved: bool = False
    tasks: Sequence[str] = ()  # names of the tasks that it can run: items parked for them are freed
    started_at: object = None  # accepted for callers that send one; the store's clock decides


class WorkerRecord(Record):
    """One registered worker. Each registration of an id is a new `incarnation`."""

    worker_id: str
    status: str
    pool_id: str | None = None
    host: str | None = None
    pid: int | None = None
    capabilities: tuple[str, ...] = ()
    started_at: float = 0.0
    last_heartbeat: float = 0.0
    lease_seconds: float = LEASE_SECONDS
    lease_until: float = 0.0
    incarnation: int = 0
    current_task_id: str | None = None
    claims: int = 0
    metadata: Mapping[str, Any] = {}
    reason: str | None = None
    renewals: int = 0  # fresh leases after outages since the worker's last sign of life

    @property
    def is_suspended(self) -> bool:
        """Whether it is there, but takes no work for now: its heartbeat said so, or a monitor."""
        return self.metadata.get(SUSPENDED) is True and not self.claims


class WorkerFilter(Record):
    """Which workers to list. Stale means: no heartbeat for longer than the threshold."""

    status: str | Sequence[str] | None = None
    capability: str | None = None
    stale_threshold_seconds: float | None = None
    pool_id: str | None = None


class Heartbeat(Record):
    """The store's answer to a heartbeat: what the worker is now, and which claims it lost."""

    status: str
    lost: tuple[str, ...] = ()


class Reaped(Record):
    """What one reaper pass did. `expired` are launches that never registered."""

    workers: tuple[str, ...] = ()
    released: int = 0
    poisoned: int = 0
    expired: tuple[str, ...] = ()


class Stats(Record):
    """What a pool did in the last `seconds`: flows, and how long items waited and ran."""

    seconds: float
    arrivals: int = 0
    starts: int = 0
    finished: int = 0
    failed: int = 0
    wait_mean: float = 0.0
    wait_p50: float = 0.0
    wait_p95: float = 0.0
    run_mean: float = 0.0
    run_p50: float = 0.0
    run_p95: float = 0.0
    run_scv: float = 0.0  # squared coefficient of variation: 0 constant, 1 exponential

    @property
    def arrivals_per_second(self) -> float:
        return self.arrivals / self.seconds if self.seconds else 0.0


class StatsBucket(Record):
    """One stretch of a pool's history, `seconds` long."""

    at: float
    seconds: float
    arrivals: int = 0
    starts: int = 0
    finished: int = 0
    failed: int = 0
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    waits: tuple[tuple[int, int], ...] = ()  # bin of histogram.py, and how many fell into it
    runs: tuple[tuple[int, int], ...] = ()


class DecisionCount(Record):
    """How many scaling decisions of one kind were recorded."""

    direction: str  # up, down or hold
    reason: str  # one of the words of reason_labels.py
    n: int


class Totals(Record):
    """All that a pool has done since it was made: these numbers never go down."""

    arrivals: int = 0
    starts: int = 0
    finished: int = 0
    failed: int = 0
    wait_seconds: float = 0.0
    run_seconds: float = 0.0
    waits: tuple[tuple[int, int], ...] = ()  # bin of histogram.py, and how many fell into it
    runs: tuple[tuple[int, int], ...] = ()
    decisions: tuple[DecisionCount, ...] = ()


class Saturation(Record):
    """Why a machine should get no more workers."""

    cause: str  # in a few words
    may_run: int  # workers that it should get all the same


class Snapshot(Record):
    """All that one scaling pass needs, read at one moment. `version` guards what follows."""

    pool: str
    group: str | None
    version: int
    now: float
    counts: Counts
    held: int = 0  # ready items that no worker may take: their tenant runs as many as it may
    workers: tuple[WorkerRecord, ...] = ()  # starting, active and terminating, lease not expired
    oldest_ready_seconds: float | None = None
    next_due_seconds: float | None = None  # until the next delayed item is ready
    paused: bool = False
    paused_seconds: float | None = None  # until the pause ends; None: until resumed
    pause_reason: str | None = None
    parked: Mapping[str, int] = {}  # items held because no worker knows their task, per task
    last_up_at: float | None = None
    last_down_at: float | None = None
    launch_failures: int = 0  # launches in a row that never registered
    last_launch_failure_at: float | None = None
    stats: Stats
    history: Sequence[StatsBucket] = ()  # as far back as the policy's HISTORY_SECONDS
    memory: Mapping[str, Any] = {}  # what the policy noted in its last decision
    cores: int = 0  # of the machine where workers would be launched; 0: not known
    saturated: Saturation | None = None  # what that machine has too little of

    @property
    def claimable(self) -> int:
        """How many items could be handed out now."""
        return 0 if self.paused else max(0, self.counts.ready - self.held)

    @property
    def starting(self) -> int:
        return sum(w.status == STARTING for w in self.workers)

    @property
    def active(self) -> int:
        return sum(w.status == ACTIVE for w in self.workers)

    @property
    def idle(self) -> int:
        return sum(w.status == ACTIVE and not w.claims and not w.is_suspended for w in self.workers)

    @property
    def suspended(self) -> tuple[WorkerRecord, ...]:
        return tuple(w for w in self.workers if w.status == ACTIVE and w.is_suspended)


class Decision(Record):
    """A scaling decision with its reason, ready to be recorded."""

    pool: str
    group: str | None = None
    policy: str
    direction: str  # up, down or hold
    current: int
    desired: int
    reason: str
    inputs: Mapping[str, Any] = {}
    launch: int = 0  # reservations to make
    drain: tuple[str, ...] = ()  # workers to mark terminating
    max_workers: int  # starting + active may not exceed it, checked again while recording
    start_deadline_seconds: float = 60.0  # a launch that has not registered by then is lost
    capabilities: tuple[str, ...] = ()
    memory: Mapping[str, Any] = {}  # what the policy wants to read in the next snapshot


class RecordedDecision(Record):
    """A decision as kept in the store, with the workers that it named."""

    version: int
    at: float
    pool: str
    group: str | None
    policy: str
    direction: str
    current: int
    desired: int
    reason: str
    inputs: Mapping[str, Any] = {}
    launched: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
