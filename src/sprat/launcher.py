"""The launcher protocol: starts workers somewhere, for reservations that a checker recorded."""

from __future__ import annotations

from sprat.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.model import PoolSettings
    from sprat.store import Store


class Launcher:
    """Starts one worker for each reserved id and returns at once. A launch that cannot even be
    begun raises; one that fails later is noticed by its deadline, or reported as lost."""

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        raise NotImplementedError


class Crew:
    """What launched workers run when it is not the processor of their pool."""

    def work(self, store: Store, pool: str, settings: PoolSettings, worker_id: str) -> str:
        """Be the worker of this id to the end; why it left (one of the words of worker.py)."""
        raise NotImplementedError


def open_launcher(name: str) -> Launcher:
    if name == "process":
        from sprat.launchers.process import ProcessLauncher

        return ProcessLauncher()
    raise InvalidInput(f"unknown launcher {name!r}: use process")
