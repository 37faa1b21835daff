"""How many items of a tenant may run at a time. Pure."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sprat.core.model import PoolSettings


VARIABLE = "PER_TENANT_MAX_CONCURRENCY"  # the limit of pools that have none


def are_set(settings: PoolSettings) -> bool:
    return settings.tenant_limit is not None or bool(settings.tenant_limits)


def limit_of(settings: PoolSettings, tenant: str) -> int | None:
    return settings.tenant_limits.get(tenant, settings.tenant_limit)


def held(settings: PoolSettings, ready: Mapping[str, int], running: Mapping[str, int]) -> int:
    """Of the ready items, by tenant, how many wait because their tenant runs as many as it may."""
    count = 0
    for tenant, n in ready.items():
        limit = limit_of(settings, tenant)
        if limit is not None:
            count += max(0, n - max(0, limit - running.get(tenant, 0)))
    return count
