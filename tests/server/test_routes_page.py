"""docs/reference/routes.md says what the server's table says."""

from __future__ import annotations

import re
from pathlib import Path

from sprat.server import openapi, tables
from sprat.server.roles import ROLES
from sprat.server.route import Route

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "routes.md").read_text()
ROW = re.compile(r"^\| ([A-Z]+) \| `([^`]+)` \| (.*?) \| (.*) \|$", re.MULTILINE)


def shown(route: Route) -> tuple[str, str, str, str]:
    roles = "none" if route.roles is None else ", ".join(route.roles)
    roles = "any" if route.roles is not None and set(route.roles) == set(ROLES) else roles
    return route.method, route.path, roles, route.summary


def test_the_page_lists_every_route_and_no_other() -> None:
    assert sorted(ROW.findall(PAGE)) == sorted(map(shown, tables.all_routes()))


def test_every_operation_has_its_own_name_a_summary_and_an_example() -> None:
    routes = tables.all_routes()
    assert len({route.name for route in routes}) == len(routes)
    for route in routes:
        assert route.summary.endswith("."), route.name
        if route.body is not None and route.tag != "store":
            assert route.example is not None, route.name


def test_the_document_has_every_route() -> None:
    paths = openapi.document(tables.all_routes())["paths"]
    documented = {(method.upper(), path) for path, methods in paths.items() for method in methods}
    assert documented == {(route.method, route.path) for route in tables.all_routes()}
