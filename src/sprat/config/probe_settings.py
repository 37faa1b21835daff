"""`worker_lifecycle:` of sprat.yml: how the server watches workers that have an endpoint."""

from __future__ import annotations

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

MAX_SECONDS = 86400.0
UNWATCHED = (
    "worker_lifecycle has no probe_hosts, so the server checks the health of no worker: list the "
    "networks, addresses or names of your workers there"
)


class Lifecycle(Record):
    """Durations in seconds. No worker is probed while `probe_hosts` is empty."""

    health_check_interval: float = 10.0
    health_check_timeout: float = 5.0
    health_failure_threshold: int = 3  # failures in a row, and a worker is unavailable
    removal_threshold: float = 300.0  # unavailable for longer, and it is removed
    probe_hosts: tuple[str, ...] = ()  # networks, addresses and names that may be connected to
    is_stated: bool = False  # in a file, perhaps with the values above

    @property
    def is_in_vain(self) -> bool:
        """Whether the file asks for health checks that are never made."""
        return self.is_stated and not self.probe_hosts


def checked(given: Mapping[str, Any]) -> Lifecycle:
    """The settings in a file, or InvalidInput."""
    for name, value in given.items():
        if name not in CHECKS:
            raise InvalidInput(f"worker_lifecycle has no {name!r}: one of {', '.join(CHECKS)}")
        CHECKS[name](value, f"worker_lifecycle.{name}")
    hosts = tuple(given.get("probe_hosts") or ())
    return Lifecycle(**{**given, "probe_hosts": hosts, "is_stated": True})


def _some_seconds(value: object, name: str) -> None:
    if not payload.seconds(value, name, MAX_SECONDS):
        raise InvalidInput(f"{name} must be more than 0 seconds")


def _hosts(value: object, name: str) -> None:
    if not isinstance(value, list | tuple) or not all(isinstance(one, str) for one in value):
        raise InvalidInput(f"{name} must be a list of networks, addresses and host names")


CHECKS: dict[str, Callable[[object, str], object]] = {
    "health_check_interval": _some_seconds,
    "health_check_timeout": _some_seconds,
    "health_failure_threshold": lambda value, name: payload.whole(value, name, 1, 1000),
    "removal_threshold": _some_seconds,
    "probe_hosts": _hosts,
}
