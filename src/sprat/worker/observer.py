"""What a worker reports while it runs, to whatever was given to it as an observer."""

from __future__ import annotations

from sprat.core.model import Settlement, WorkItem


class WorkerObserver:
    """Extend it with the methods that you need: here each does nothing."""

    def began(self) -> None:
        """The worker is registered, and takes jobs from now on."""

    def ended(self) -> None:
        """It takes no more jobs."""

    def job_began(self, item: WorkItem) -> None:
        """A job is about to run."""

    def job_ended(self, item: WorkItem, settlement: Settlement | None) -> None:
        """A job is over. None: it was stopped, because its claim was lost or it is handed back."""

    def settled(self, settlement: Settlement, is_accepted: bool) -> None:
        """The store has answered. Not accepted: the claim was lost before."""

    def signalled(self, times: int) -> None:
        """The worker was asked to leave, for the nth time. Called in a signal handler."""
