"""The dashboard: a page that anybody may load. It shows what the key typed into it may see."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from sprat.server.http_error import not_found
from sprat.server.route import RequestCall, Response, Table

table = Table("dashboard")

HTML = "text/html; charset=utf-8"
KINDS = {"html": HTML, "css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}
FILES = ("style.css", "api.js", "charts.js", "elements.js", "page.js")
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
        "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
}


@table("GET", "/", roles=None, media_type=HTML, limited=False)
async def get_dashboard(call: RequestCall) -> Any:
    """The dashboard, for a browser."""
    return _file("page.html")


@table("GET", "/dashboard/{file}", roles=None, media_type="text/*", errors=(404,), limited=False)
async def get_dashboard_file(call: RequestCall) -> Any:
    """A part of the dashboard."""
    if call.path["file"] not in FILES:
        raise not_found()
    return _file(call.path["file"])


@cache
def _file(name: str) -> Response:
    body = (resources.files("sprat.server") / "dashboard" / name).read_bytes()
    return Response(body=body, media_type=KINDS[name.rpartition(".")[2]], headers=HEADERS)
