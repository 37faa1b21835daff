"""A worker that stays: it takes any place that a pass made, again and again, until it is stopped.

For a process that something else keeps alive and counts, such as a pod of a Deployment: it would be
started again if it left. With nothing to do it leaves the registry, and waits for another place or
for SIGTERM. It never works without a place, so the pool's maximum holds. A file tells others how it
is: it is there as soon as the process heeds signals, and has a word in it while it has a place.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.errors import InvalidInput, StoreUnavailable, UnknownWorker
from sprat.core.runtime import runtime
from sprat.worker.observer import WorkerObserver
from sprat.worker.signals import Signals
from sprat.worker.worker import TOLD_TO, Worker, WorkerReport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeVar

    from sprat.store.store import Store

    T = TypeVar("T")

LOOK_SECONDS = 1.0  # for a place, while it has none
SEATED = "seated\n"


def is_for(worker: model.WorkerRecord, group: str | None) -> bool:
    """Whether a place is for this machine group; None: for those of no group."""
    return group in worker.capabilities if group is not None else not worker.capabilities


class Standby(WorkerObserver):
    """Makes one worker after the other, of each of which it has to be an observer."""

    def __init__(
        self,
        store: Store,
        pool: str,
        make: Callable[[str], Worker],
        *,
        file: str,
        place: str | None = None,
        group: str | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._store = store
        self._pool = pool
        self._make = make
        self._file = file
        self._place = place
        self._group = group
        self._say = say
        self._is_told = False
        self._was_active = False  # whether the last worker got its place
        self._done = WorkerReport(worker_id="", left=TOLD_TO)

    def run(self) -> WorkerReport:
        """Take places until a signal comes."""
        with Signals(self.stop):
            self.show("")
            self._outlast(self._bury)
            while not self._is_told:
                if not self._take_one():
                    runtime.sleep(LOOK_SECONDS)
        return self._done

    def show(self, word: str) -> None:
        try:
            with open(self._file, "w", encoding="utf-8") as file:
                file.write(word)
        except OSError as error:
            raise InvalidInput(f"{self._file} cannot be written: {error.strerror}") from None

    def stop(self) -> None:
        self._is_told = True

    def began(self) -> None:
        self._was_active = True
        self.show(SEATED)

    def ended(self) -> None:
        self.show("")

    def signalled(self, times: int) -> None:
        self.stop()

    def _take_one(self) -> bool:
        """Be the worker of a place to its end; False when there is none."""
        for worker_id in self._outlast(self._places) or ():
            if not self._is_told and self._sit(worker_id):
                return True
        return False

    def _places(self) -> list[str]:
        """Those that are meant for us and not taken yet, oldest first."""
        return [
            worker.worker_id
            for worker in self._live()
            if worker.status == model.STARTING and is_for(worker, self._group)
        ]

    def _live(self) -> tuple[model.WorkerRecord, ...]:
        return self._store.pool(self._pool).observe().workers  # a worker's key may not list them

    def _sit(self, worker_id: str) -> bool:
        """False when another was quicker."""
        self._was_active = False
        try:
            report = self._make(worker_id).run()
        except (StoreUnavailable, UnknownWorker) as error:
            self._say(str(error))
            return False
        self._done = report.added_to(self._done).replace(left=TOLD_TO)
        return self._was_active

    def _bury(self) -> None:
        """Mark the worker that is registered in this place as lost: it was killed with its
        container. Where our key does not allow that, its lease ends it."""
        for worker in self._live():
            if self._place is not None and worker.metadata.get("place") == self._place:
                why = "its container was started again"
                try:
                    self._store.workers.update_status(worker, model.LOST, reason=why)
                except InvalidInput as error:
                    self._say(str(error))

    def _outlast(self, step: Callable[[], T]) -> T | None:
        """Repeat a step while the store cannot be reached; None when we are told to leave."""
        while not self._is_told:
            try:
                return step()
            except StoreUnavailable as error:
                self._say(str(error))
                runtime.sleep(LOOK_SECONDS)
        return None
