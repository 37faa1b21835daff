"""The workers of a `launch`: each is forked from a process that compiled the machine once."""

from __future__ import annotations

from sprat.core import jsontext
from sprat.core.model import POOL_EMPTY, WORKER_DONE
from sprat.fleet.launcher import Crew
from sprat.machines.library import Library
from sprat.machines.runtime.hooks import bound
from sprat.machines.runtime.host import POOLS_PROCESSOR, Interrupted
from sprat.machines.runtime.processing import machine_of
from sprat.machines.runtime.running import Execution
from sprat.machines.runtime.worker import Fenced
from sprat.worker.processor import load
from sprat.worker.worker import ENOUGH, LOST, TOLD_TO

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import PoolSettings
    from sprat.store.store import Store
    from sprat.worker.processor import Processor


class MachineCrew(Crew):
    """What a launch (see launching.py) asks for, read and compiled before the fork server forks."""

    def __init__(self, order: str, settings: PoolSettings) -> None:
        said = jsontext.loads(order)
        self._given = said["input"]
        self._library = Library(said["bound"])
        self._machine = self._library.read(said["machine"])
        self._library.read_all(self._machine)
        bound(self._machine)  # imports what the hooks need
        self._processor = self._processor_of(settings)

    def _processor_of(self, settings: PoolSettings) -> Processor | None:
        """The pool's own processor, if it is needed: importing it once is enough."""
        uses = any(state.machine == POOLS_PROCESSOR for state in self._machine.states.values())
        is_ours = uses and self._library.find(POOLS_PROCESSOR, self._machine) is None
        if not is_ours or not settings.has_processor:
            return None
        if settings.machine is not None:
            self._library.read_all(machine_of(settings, self._library))
            return None
        return load(settings)

    def work(self, store: Store, pool: str, settings: PoolSettings, worker_id: str) -> str:
        """Be the worker of this id; why it left."""
        execution = Execution(
            store, self._library, self._machine, execution_id=worker_id, reserved=True, pool=pool
        )
        if self._processor is not None:
            execution.room.use(self._processor, settings)
        try:
            execution.run(self._given)
        except Fenced:
            return LOST
        except Interrupted:
            return TOLD_TO
        # One that did not even ask for work is no reason to look for more of it.
        is_over = execution.room.is_told_to_leave or not execution.claims
        if execution.claims:
            store.happened(POOL_EMPTY, pool, settings)
        if not is_over:
            store.happened(WORKER_DONE, pool, settings)
        return TOLD_TO if is_over else ENOUGH
