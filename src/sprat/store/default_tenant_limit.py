"""PER_TENANT_MAX_CONCURRENCY: the `tenant_limit` of pools that have none.

Claims are decided in the store, which sees no environment. So a process that has the variable
writes the limit into the settings of the pool: before it pushes for a tenant, when it begins to
work on the pool, and with `sprat apply`.
"""

from __future__ import annotations

import os

from sprat.core import jsontext
from sprat.core.tenant_limits import VARIABLE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from sprat.core.model import NewItem
    from sprat.store.backend import Backend


def ensure(backend: Backend, pool: str) -> None:
    """Give a pool without a limit the one of this process's environment."""
    if not os.environ.get(VARIABLE):
        return
    from sprat.config.environment import tenant_limit  # here: most processes have no such variable

    limit = tenant_limit()
    if limit is None:
        return
    while (state := backend.pool_state(pool)).settings.tenant_limit is None:
        after = state.settings.replace(tenant_limit=limit)
        backend.configure(pool, jsontext.dumps(after.as_dict()), state.version)


def before_push(
    backend: Backend, pool: str, items: Iterable[NewItem], tenant: str | None = None
) -> None:
    """The same for these items, if they, or all that this caller pushes, belong to a tenant."""
    if os.environ.get(VARIABLE) and (tenant or any(item.tenant is not None for item in items)):
        ensure(backend, pool)
