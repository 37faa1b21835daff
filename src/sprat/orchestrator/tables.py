"""All routes, the busiest first: they are looked up in this order."""

from __future__ import annotations

from sprat.orchestrator.route import Route
from sprat.orchestrator.routes import verbs


def all_routes() -> list[Route]:
    return [*verbs.routes()]
