"""The launcher protocol: starts workers somewhere, for reservations that a checker recorded."""

from __future__ import annotations

from sprat.core import extensions
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core.model import PoolSettings, WorkerRecord
    from sprat.store.store import Store


class Launcher:
    """Starts workers in one kind of place, and knows what becomes of them there."""

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        """Start one worker for each reserved id and return at once; the same id twice is one
        worker. What cannot be begun raises (LaunchFailed when it is only some of them); what
        fails later is noticed by `tend`, or by its deadline."""
        raise NotImplementedError

    def tend(
        self, url: str, pool: str, settings: PoolSettings, workers: Sequence[WorkerRecord]
    ) -> dict[str, str]:
        """Clear away what workers left behind, and say which of these, the live ones of the pool,
        are gone or will never come, and why. Every pass begins with it."""
        return {}

    def complaint(self, settings: PoolSettings) -> str | None:
        """Why no worker could be started now, as far as that can be told without starting one."""
        return None

    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        """Run a scaling pass of the pool beside the caller, and do not wait for it."""
        raise NotImplementedError

    def attend(self, url: str, pool: str, settings: PoolSettings) -> None:
        """The store counts on workers that may be dead: see to it that a process looks again when
        their leases have ended. By default a pass, which asks the launcher what is left of them."""
        self.start_pass(url, pool, settings)


class Crew:
    """What launched workers run when it is not the processor of their pool."""

    def work(self, store: Store, pool: str, settings: PoolSettings, worker_id: str) -> str:
        """Be the worker of this id to the end; why it left (one of the words of worker.py)."""
        raise NotImplementedError


def require_processor(settings: PoolSettings, pool: str) -> None:
    """Workers that are launched for a pool without a handler can only fail: InvalidInput."""
    if not settings.has_processor:
        raise InvalidInput(f"pool {pool} has no handler and no command: `sprat apply` gives it one")


def open_launcher(name: str) -> Launcher:
    """The launcher of this name; InvalidInput for an unknown one."""
    launcher: Launcher = extensions.load("launcher", name)()
    return launcher
