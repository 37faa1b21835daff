"""`worker_lifecycle:` of sprat.yml: how the server watches workers that have an endpoint."""

from __future__ import annotations

from sprat.core import fields
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
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
    health_failure_threshold: int = 3
    removal_threshold: float = 300.0
    probe_hosts: tuple[str, ...] = ()
    is_stated: bool = False  # in a file, perhaps with the values above

    @property
    def is_in_vain(self) -> bool:
        """Whether the file asks for health checks that are never made."""
        return self.is_stated and not self.probe_hosts


SOME_SECONDS = fields.more_than_zero(fields.seconds(MAX_SECONDS))

FIELDS = {
    "health_check_interval": SOME_SECONDS.means("between two checks of one worker"),
    "health_check_timeout": SOME_SECONDS.means("a check without an answer by then has failed"),
    "health_failure_threshold": fields.whole(1, 1000).means(
        "after this many failed checks in a row a worker is unavailable"
    ),
    "removal_threshold": SOME_SECONDS.means("a worker that is unavailable for longer is removed"),
    "probe_hosts": fields.texts(
        fields.text(), "a list of networks, addresses and host names"
    ).means("networks, addresses and names that the server may connect to; none: no checks"),
}


def checked(given: Mapping[str, Any]) -> Lifecycle:
    """The settings in a file, or InvalidInput."""
    values = {
        name: fields.find(FIELDS, name, "worker_lifecycle has no").read(
            value, f"worker_lifecycle.{name}"
        )
        for name, value in given.items()
    }
    hosts = tuple(values.pop("probe_hosts", ()))
    return Lifecycle(**values, probe_hosts=hosts, is_stated=True)
