"""The OpenAPI document, made from the tables of routes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from sprat import __version__
from sprat.core import jsontext
from sprat.server.http_error import MEANINGS
from sprat.server.route import Route

REFERENCE = "#/components/schemas/{name}"
EVERYWHERE = (400, 408, 413, 415, 422, 503)
WITH_A_KEY = (401, 403)


class Error(msgspec.Struct, kw_only=True):
    """A word for programs and a sentence for people."""

    error: str
    message: str


def document(routes: Iterable[Route]) -> dict[str, Any]:
    """The whole document."""
    table = list(routes)
    shapes = [Error]
    for route in table:
        shapes += [one for one in (route.body, route.query, route.answer) if one is not None]
    schemas, components = msgspec.json.schema_components(shapes, ref_template=REFERENCE)
    by_shape = {id(shape): schema for shape, schema in zip(shapes, schemas, strict=True)}
    paths: dict[str, dict[str, Any]] = {}
    for route in table:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(
            route, by_shape, components
        )
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "sprat orchestrator",
            "version": __version__,
            "description": "Durable work pools that scale themselves, over HTTP.",
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"key": []}],
    }


def text(routes: Iterable[Route]) -> bytes:
    return jsontext.dumps(document(routes)).encode()


def _operation(route: Route, shapes: dict[int, Any], components: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "tags": [route.tag],
        "parameters": _parameters(route, shapes, components),
        "responses": _responses(route, shapes),
    }
    if route.roles is None:
        operation["security"] = []
    else:
        operation["x-roles"] = list(route.roles)
    if route.takes != "application/json":
        operation["requestBody"] = _content(route.takes, {"type": "string"}, route.example)
    elif route.body is not None:
        operation["requestBody"] = _content(route.takes, shapes[id(route.body)], route.example)
    return operation


def _content(media_type: str, schema: Any, example: Any = None) -> dict[str, Any]:
    inner = {"schema": schema} if example is None else {"schema": schema, "example": example}
    return {"required": True, "content": {media_type: inner}}


def _parameters(
    route: Route, shapes: dict[int, Any], components: dict[str, Any]
) -> list[dict[str, Any]]:
    found = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string", "minLength": 1}}
        for name in re.findall(r"{(\w+)}", route.path)
    ]
    if route.query is not None:
        name = shapes[id(route.query)]["$ref"].rpartition("/")[2]
        for field, schema in components[name]["properties"].items():
            found.append({"name": field, "in": "query", "required": False, "schema": schema})
    return found


def _responses(route: Route, shapes: dict[int, Any]) -> dict[str, Any]:
    good: dict[str, Any] = {"description": route.summary}
    media = route.media_type.partition(";")[0]
    if route.answer is not None:
        good["content"] = {media: {"schema": shapes[id(route.answer)]}}
    else:
        is_text = media.startswith("text/")
        good["content"] = {media: {"schema": {"type": "string"} if is_text else {}}}
    found = {"200": good}
    if route.empty:
        found["204"] = {"description": "there is nothing"}
    statuses = {*EVERYWHERE, *route.errors}
    if route.roles is not None:
        statuses |= {*WITH_A_KEY, 429}
    error = {"application/json": {"schema": {"$ref": REFERENCE.format(name="Error")}}}
    for status in sorted(statuses):
        found[str(status)] = {"description": MEANINGS[status], "content": error}
    return found
