"""What the orchestrator says about a scale set: asked for now and then, and remembered.

While the orchestrator cannot be reached, the last good answer counts, however old it is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from sprat.controller import limits
from sprat.core import percent_encoding
from sprat.core.errors import SpratError
from sprat.core.record import Record
from sprat.worker.client import Routes

ASK_AGAIN_SECONDS = 5.0  # after an answer that did not come


class CachedAnswer(Record):
    """The last good one, and until when nobody needs to ask again."""

    limits: Mapping[str, float] = {}
    until: float


class Remote:
    """The scale sets of one orchestrator. May be shared between threads."""

    def __init__(
        self,
        url: str,
        ttl_seconds: float,
        *,
        complain: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._routes = Routes(url)
        self._ttl = ttl_seconds
        self._complain = complain
        self._clock = clock
        self._known: dict[tuple[str, str], CachedAnswer] = {}

    def limits(self, tenant: str, group: str) -> Mapping[str, float]:
        """What counts now; nothing, if there never was an answer."""
        known = self._known.get((tenant, group))
        if known is not None and self._clock() < known.until:
            return known.limits
        try:
            values: Mapping[str, float] = self._ask(tenant, group)
            pause = self._ttl
        except SpratError as error:
            values = {} if known is None else known.limits
            pause = min(self._ttl, ASK_AGAIN_SECONDS)
            used = "what it said last counts" if values else "the defaults count"
            self._complain(f"no configuration for {tenant}/{group}, {used}: {error}")
        answer = CachedAnswer(limits=values, until=self._clock() + pause)
        self._known[tenant, group] = answer
        return answer.limits

    def _ask(self, tenant: str, group: str) -> dict[str, float]:
        path = (
            f"/scale-sets/{percent_encoding.quoted(tenant)}/{percent_encoding.quoted(group)}/config"
        )
        config = self._routes.call("GET", path)
        return {
            name: field(config[name], name)
            for name, field in limits.FIELDS.items()
            if name in config
        }
