"""A worker that can be reached: others may ask how it is, and an orchestrator knows where.

It works like any other. What is different: it tells its address when it registers, and when it
was forgotten (removed, or out of touch for longer than its lease) it does not leave but registers
again, with what it finished meanwhile. A job that another worker has by then was stopped
before, as soon as a heartbeat said so or none came through.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sprat.core import jsontext, model
from sprat.core.errors import StoreUnavailable
from sprat.core.runtime import runtime
from sprat.worker.client import Client, pause_after
from sprat.worker.health import HealthServer
from sprat.worker.observer import WorkerObserver
from sprat.worker.worker import LOST, TOLD_TO, Worker, WorkerReport

Say = Callable[[str], None]
Sleep = Callable[[float], object]

STATUSES = {  # how a settlement is reported
    model.COMPLETE: "completed",
    model.FAIL: "failed",
    model.TRANSIENT: "transient",
    model.POISON: "poisoned",
}


class EndpointRegistration(WorkerObserver):
    """Answers for the workers that `make` makes, one after the other, all under the same id. It
    has to be an observer of each, which tells others its `url` in its metadata."""

    def __init__(
        self,
        address: str,
        make: Callable[[], Worker],
        *,
        say: Say = lambda _: None,
        sleep: Sleep = runtime.sleep,
    ) -> None:
        self._health = HealthServer(address, lambda: self._operation)
        self._make = make
        self._say = say
        self._sleep = sleep
        self._operation: str | None = None  # the job that is running
        self._done = WorkerReport(worker_id="", left=LOST)

    @property
    def url(self) -> str:
        return self._health.url

    def run(self, client: Client | None) -> WorkerReport:
        """Work until there is a reason to leave other than having been forgotten. Without an
        orchestrator it works as any other."""
        self._health.start()
        self._say(f"health at {self.url}/health")
        try:
            while True:
                if client is not None:
                    self._announce(client)
                report = self._once(client)
                if client is None or report.left != LOST:
                    return self._done
                self._say("forgotten, or out of touch for too long: registering again")
        finally:
            self._health.close()

    def _once(self, client: Client | None) -> WorkerReport:
        worker = self._make()
        try:
            report = worker.run()
        except StoreUnavailable:  # a worker whose registration does not come through is lost
            report = worker.report(TOLD_TO if worker.is_told_to_leave else LOST)
        self._operation = None
        self._done = report.added_to(self._done)
        if client is not None:
            _report(client, worker.unsettled())
        return report

    def _announce(self, client: Client) -> None:
        failures = 0
        while True:
            try:
                client.register()  # it works on nothing: there is nothing to stop
                return
            except StoreUnavailable as error:
                failures += 1
                pause = pause_after(failures)
                self._say(f"{error}; registering again in {pause:g} s")
                self._sleep(pause)

    def job_began(self, item: model.WorkItem) -> None:
        self._operation = item.id

    def job_ended(self, item: model.WorkItem, settlement: model.Settlement | None) -> None:
        self._operation = None


def _report(client: Client, settlements: Iterable[model.Settlement]) -> None:
    """Keep them for the next registration. The server frees what has not begun."""
    for one in settlements:
        if one.outcome in STATUSES:
            result = None if one.result is None else jsontext.loads(one.result)
            status = STATUSES[one.outcome]
            client.finish(
                one.item_id, result=result, error=one.error, status=status, token=one.token
            )
