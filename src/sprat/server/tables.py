"""All routes, the busiest first: they are looked up in this order."""

from __future__ import annotations

from sprat.server.route import Route
from sprat.server.routes import (
    claims,
    dashboard,
    dispatch,
    fleet,
    jobs,
    pools,
    queue,
    service,
    verbs,
)


def all_routes() -> list[Route]:
    families = (claims, jobs, queue, dispatch, fleet, pools, service, dashboard)
    return [*verbs.routes(), *(route for family in families for route in family.table.routes)]
