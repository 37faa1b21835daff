"""The room that a machine runs in: it does what states ask for, as a worker of a store, in time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sprat.core import payload
from sprat.core.coroutines import outcome
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput, SpratError
from sprat.core.runtime import runtime
from sprat.machines.checks import is_path
from sprat.machines.runtime import launching, user_code
from sprat.machines.runtime.arguments import Arguments
from sprat.machines.runtime.hooks import Bound, bound, enter_directory, of_object
from sprat.machines.runtime.worker import ClaimLost, Fenced
from sprat.machines.stepping import Host, MachineFailed, Position, Run, StateTimeout, TimeIsUp
from sprat.worker.handlers import find
from sprat.worker.job import Job, Stopped
from sprat.worker.job import run as run_job
from sprat.worker.processor import Outcome, failed, load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import PoolSettings, WorkItem
    from sprat.machines.definition import Machine
    from sprat.machines.library import Library
    from sprat.machines.runtime.worker import MachineWorker
    from sprat.store.store import Store
    from sprat.worker.processor import Processor


LOOK_UP_SECONDS = 0.5  # a machine that waits notices a signal within this
MOST_INSIDE = 20  # machines that run machines
POOLS_PROCESSOR = "actual_job_processor"  # unless it is bound: the processor of the job's pool


class Interrupted(BaseException):
    """Told to stop at once. What was kept of the run stays kept."""


class Given:
    """What a caller adds to the machines that it runs: Python's side of hooks and actions."""

    def __init__(
        self,
        *,
        hooks: Any = None,
        actions: Mapping[str, Callable[[Any], Any]] | None = None,
        registered: Mapping[str, Any] | None = None,
    ) -> None:
        self.hooks = hooks
        self.actions = dict(actions or {})
        self.registered = dict(registered or {})


class MachineHost(Host):
    def __init__(
        self,
        open_store: Callable[[], Store],
        library: Library,
        member: MachineWorker | None = None,
        *,
        pool: str | None = None,
        given: Given | None = None,
        keep: Callable[[Position], None] | None = None,
    ) -> None:
        self._open_store = open_store
        self._store: Store | None = None
        self._library = library
        self._given = given or Given()
        self._keep = keep
        self._limits = user_code.TimeLimits()
        self._hooks: dict[str, Bound] = {}
        self._loaded: tuple[Processor, PoolSettings] | None = None
        self._depth = 0
        self._told = 0
        self._is_interruptible = False
        self.member = member
        self.pool = pool
        self.last_failure: Outcome | None = None
        self.launched = launching.NOTHING  # in this run

    @property
    def store(self) -> Store:
        if self._store is None:
            self._store = self._open_store()
        return self._store

    def hooks_of(self, machine: Machine) -> Bound:
        """The hooks of a machine's file; of the outermost machine, those of the caller if given."""
        key = f"{machine.path} {machine.name}"
        if key not in self._hooks:
            is_outermost = not self._hooks and self._given.hooks is not None
            self._hooks[key] = (
                of_object(self._given.hooks)
                if is_outermost
                else bound(machine, self._given.registered)
            )
        return self._hooks[key]

    # -- time -------------------------------------------------------------------------------

    def on_signal(self) -> None:
        """Told to stop. A worker finishes its job first; what runs here otherwise stops here."""
        self._told += 1
        if self._is_interruptible and self._has_to_stop:
            raise Interrupted

    @property
    def _has_to_stop(self) -> bool:
        is_worker = self.member is not None and self.member.is_registered
        return self._told > 1 or (self._told > 0 and not is_worker)

    @property
    def is_told_to_leave(self) -> bool:
        return self._told > 0 or (self.member is not None and self.member.status == "terminating")

    def check_time(self) -> None:
        self._check_limits()
        if self.member is not None:
            self.member.beat(between_states=True)

    def _check_limits(self) -> None:
        limit = self._limits.reached()
        if limit is not None:
            raise TimeIsUp(limit)
        if self._has_to_stop:
            raise Interrupted

    def limit(self, seconds: float) -> object:
        return self._limits.add(seconds)

    def lift(self, limit: object) -> None:
        self._limits.lift(limit)

    def wait(self, seconds: float) -> None:
        end = runtime.monotonic() + seconds
        while (left := end - runtime.monotonic()) > 0 and not self.is_told_to_leave:
            runtime.sleep(min(left, self._look_after()))
        self.check_time()

    def _look_after(self) -> float:
        """All is well, or this raises; how long until it has to be asked again."""
        self._check_limits()
        if self.member is not None:
            self.member.beat()
        pauses = [LOOK_UP_SECONDS, self._limits.left()]
        if self.member is not None and self.member.is_registered:
            pauses.append(self.member.until_due())
        return min(pause for pause in pauses if pause is not None)

    # -- what states do ---------------------------------------------------------------------

    def save(self, position: Position) -> None:
        if self._keep is not None:
            self._keep(position)

    def failed(self, run: Run, error: Exception) -> None:
        self.last_failure = self.outcome_of(error)

    def outcome_of(self, error: Exception) -> Outcome:
        """What an error that ends a job means for it."""
        if isinstance(error, user_code.WorkFailed):
            return error.outcome
        own = isinstance(error, StateTimeout)  # the job's fault, unlike a time-out of a server
        told = failed(error)
        return told.replace(transient=told.transient and not own)

    def perform(self, run: Run, action: str, given: Any, context: dict[str, Any]) -> Any:
        from sprat.machines.runtime.actions import ACTIONS

        hooks = self.hooks_of(run.machine)
        function = self._function(run, action)
        is_known = function is not None or action in ACTIONS
        if hooks.has("on_action"):
            if not is_known:
                return self._user(run, lambda seen: hooks.on_action(action, seen), None, context)
            seen = dict(context)
            answer = hooks.on_action(action, seen)
            if answer is not None and answer is not seen:
                return answer
        if function is not None:
            return self._user(run, function, given, context)
        if action not in ACTIONS:
            raise InvalidInput(f"there is no action {action!r}{did_you_mean(action, ACTIONS)}")
        return ACTIONS[action](self, Arguments(run, given, context, self.pool))

    def _function(self, run: Run, action: str) -> Callable[[Any], Any] | None:
        if action in self._given.actions:
            return self._given.actions[action]
        path = run.machine.actions.get(action, action)
        if not is_path(path):
            return None
        enter_directory(run.machine)
        found: Callable[[Any], Any] = find(path)
        return found

    def _user(
        self, run: Run, function: Callable[[Any], Any], given: Any, context: dict[str, Any]
    ) -> Any:
        """Call the user's function with its input, or with the context if it has none."""
        argument = dict(context) if given is None else given

        def work() -> Any:
            output = outcome(function(argument))
            return [output is argument and given is None, output]

        is_context, output = self.call(work, run.machine.settings.isolation)
        if is_context:
            context.clear()
            context.update(output)
        return output

    def call(self, work: Callable[[], Any], isolation: str) -> Any:
        """Run what may take long: where it can be stopped, and while heartbeats go on."""
        is_worker = self.member is not None and self.member.is_registered
        if self._limits or (is_worker and isolation == "process"):
            return user_code.in_a_child(work, self._look_after)
        self._is_interruptible = True
        try:
            return self._beside_heartbeats(work) if is_worker else user_code.here(work)
        finally:
            self._is_interruptible = False

    def _beside_heartbeats(self, work: Callable[[], Any]) -> Any:
        from sprat.worker.heartbeat_thread import HeartbeatThread

        assert self.member is not None
        member, why = self.member, []

        def beat() -> bool:
            try:
                member.beat(now=True)
                return True
            except (ClaimLost, Fenced) as error:
                why.append(error)
                return False

        pulse = HeartbeatThread(beat, pause=member.until_due)
        pulse.start()
        try:
            pulse.begin()
            output = user_code.here(work)
            pulse.finish()
            return output
        except Stopped:
            raise why[0] from None
        finally:
            pulse.finish()
            pulse.end()

    def launch(self, run: Run, name: str, inputs: list[Any]) -> Any:
        machine = self._library.get(name, run.machine)
        wanted = [(self._pool_for(machine, given, run), given) for given in inputs]
        most = launching.limit_of(run.context, run.input)
        done = launching.launch(
            self.store, self._library, machine, wanted, most=most, who=run.machine.name
        )
        self.launched = self.launched.plus(done.asked, done.ids, done.reason)
        return done.as_output()

    def _pool_for(self, machine: Machine, given: Mapping[str, Any], run: Run) -> str:
        for found in (given.get("pool_id"), machine.settings.worker_pool, self.pool):
            if isinstance(found, str):
                return payload.pool_name(found)
        return Arguments(run, None, run.context, None).pool(or_else=machine.name)

    # -- machines inside --------------------------------------------------------------------

    def invoke(
        self,
        run: Run,
        name: str,
        given: Mapping[str, Any],
        inner: Mapping[str, Any] | None,
        save: Callable[[Position], None],
    ) -> Any:
        machine = self._library.find(name, run.machine)
        item = self._item()
        if machine is None and name == POOLS_PROCESSOR and item is not None:
            return self._by_the_pool(item, inner, save)
        machine = machine or self._library.get(name, run.machine)
        if item is None or self._depth:
            return self._inside(machine, given, Position.read(inner, machine), save)
        return self._on_item(machine, given, item, save)

    def _item(self) -> WorkItem | None:
        held = self.member.held if self.member is not None else {}
        return next(iter(held.values())) if len(held) == 1 else None

    def _on_item(
        self, machine: Machine, given: Any, item: WorkItem, save: Callable[[Position], None]
    ) -> Any:
        """A machine that works on a claimed item: its position is kept with the item, so that
        the next attempt goes on where this one was interrupted."""
        pool = self.store.pool(item.pool)

        def keep(position: Position) -> None:
            if position.steps:
                pool.save_checkpoint(item, position.as_dict())

        return self._inside(machine, given, Position.read(item.checkpoint, machine), keep)

    def _inside(
        self,
        machine: Machine,
        given: Any,
        position: Position | None,
        save: Callable[[Position], None],
    ) -> Any:
        if self._depth >= MOST_INSIDE:
            raise MachineFailed(f"machines run machines {MOST_INSIDE} levels deep: {machine.name}")
        self._depth += 1
        try:
            hooks = self.hooks_of(machine)
            return Run(machine, self, given, hooks=hooks, position=position, save=save).run()
        finally:
            self._depth -= 1

    def _by_the_pool(self, item: WorkItem, inner: Any, save: Callable[[Position], None]) -> Any:
        """The item's own pool says what its processor is."""
        if self._loaded is not None:
            processor, settings = self._loaded
            return self._process(processor, item, settings.isolation)
        settings = self.store.pool(item.pool).state().settings
        if settings.machine is not None:
            machine, given = self.machine_of(settings, item.data)
            return self._on_item(machine, given, item, save)
        try:
            processor = load(settings)
        except SpratError as error:
            raise InvalidInput(f"{POOLS_PROCESSOR} is bound to nothing, and {error}") from None
        return self._process(processor, item, settings.isolation)

    def use(self, processor: Processor, settings: PoolSettings) -> None:
        """Take this for the pool's processor: it is loaded already."""
        self._loaded = (processor, settings)

    def _process(self, processor: Processor, item: WorkItem, isolation: str) -> Any:
        job = Job(self.store.pool(item.pool), item)

        return self.call(lambda: run_job(processor, job), isolation)

    def machine_of(self, settings: PoolSettings, data: Any) -> tuple[Machine, dict[str, Any]]:
        from sprat.machines.runtime.processing import input_of, machine_of

        return machine_of(settings, self._library), input_of(data)
