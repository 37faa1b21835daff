"""Runs a machine from beginning to end: as a worker if it is one, else kept so that it resumes."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

from sprat.core import model, payload
from sprat.core.errors import InvalidInput
from sprat.machines.definition import Machine
from sprat.machines.library import Library
from sprat.machines.runtime.checkpoints import Checkpoints
from sprat.machines.runtime.host import Given, Interrupted, MachineHost
from sprat.machines.runtime.worker import Fenced, MachineWorker
from sprat.machines.stepping import Position, Run
from sprat.store.store import Store
from sprat.worker.signals import Signals


def run_machine(
    store: Store,
    machine: str,
    given: Mapping[str, Any] | None = None,
    *,
    execution_id: str | None = None,
    resume: bool = False,
    hooks: Any = None,
    actions: Mapping[str, Callable[[Any], Any]] | None = None,
    machines: Mapping[str, str] | None = None,
) -> Any:
    """Run the machine of a file (or one of ours, by name) in this store; its output. `hooks` is
    an object with some of the hooks, or a mapping; `actions` are functions by name; `machines`
    are files by the names that machines call each other by."""
    library = Library(machines)
    execution = Execution(
        store,
        library,
        library.get(machine, directory=os.getcwd()),
        execution_id=execution_id,
        given=Given(hooks=hooks, actions=actions),
    )
    return execution.run(given or {}, resume=resume)


class Execution:
    """One execution of a machine in a store. A machine with a heartbeat_interval, and one that
    was launched, is a worker: it is registered while it runs. What a worker does is kept with its
    jobs, so only other machines have a position of their own to resume from."""

    def __init__(
        self,
        store: Store,
        library: Library,
        machine: Machine,
        *,
        execution_id: str | None = None,
        reserved: bool = False,
        pool: str | None = None,
        given: Given | None = None,
    ) -> None:
        self.id = execution_id or f"x-{payload.new_id()}"
        self._store = store
        self._machine = machine
        interval = machine.settings.heartbeat_interval
        self._is_worker = interval is not None or reserved
        self._pool = pool or machine.settings.worker_pool
        self._keeper = None if self._is_worker else Checkpoints(store, self.id)
        self._member = MachineWorker(store, self.id, interval=interval, reserved=reserved)
        self.room = MachineHost(
            lambda: store,
            library,
            self._member,
            pool=self._pool,
            given=given,
            keep=self._keeper.save if self._keeper is not None else None,
        )

    @property
    def claims(self) -> int:
        """How many jobs it has taken."""
        return self._member.claims

    def run(self, given: Mapping[str, Any], *, resume: bool = False) -> Any:
        """The output of the final state. `resume` goes on where this execution was."""
        position, output = self._where(resume)
        if output is not None:
            return output[0]
        with Signals(self.room.on_signal):
            output = [self._corrected(self._watched(given, position))]
        if self._keeper is not None:
            self._keeper.finish(self._machine, output[0])
        return output[0]

    def _corrected(self, output: Any) -> Any:
        """A machine knows how many workers it asked for. Where fewer were launched, its output
        has the number that was, and the reason."""
        done = self.room.launched
        if not isinstance(output, dict) or len(done.ids) == done.asked:
            return output
        return {**output, "spawned": len(done.ids), "asked": done.asked, "reason": done.reason}

    def _where(self, resume: bool) -> tuple[Position | None, list[Any] | None]:
        if self._keeper is None:
            if resume:
                raise InvalidInput(f"{self._machine.name} is a worker: it has nothing to resume")
            return None, None
        found = self._keeper.resumed(self._machine) if resume else self._keeper.new(self._machine)
        if "output" in found:
            return None, [found["output"]]
        return Position.read(found, self._machine), None

    def _watched(self, given: Mapping[str, Any], position: Position | None) -> Any:
        """Run, and leave the registry as the run ended."""
        try:
            output = self._run(given, position)
        except Fenced:
            raise
        except Interrupted:
            self._member.leave(model.TERMINATED, "told to leave")
            raise
        except BaseException as error:
            self._member.leave(model.LOST, f"{type(error).__name__}: {error}")
            raise
        self._member.leave(model.TERMINATED, "done")
        return output

    def _run(self, given: Mapping[str, Any], position: Position | None) -> Any:
        hooks = self.room.hooks_of(self._machine)
        run = Run(self._machine, self.room, given, hooks=hooks, position=position)
        if self._is_worker:
            self._join(run)
        run.context.setdefault("execution_id", self.id)
        return run.run()

    def _join(self, run: Run) -> None:
        pool = self._pool or run.context.get("pool_id") or run.input.get("pool_id")
        self._member.join(pool if isinstance(pool, str) else None)
        run.context.setdefault("worker_id", self._member.worker_id)
