"""One line a request and act, as text or as JSON. Whatever users send, a line stays one line."""

from __future__ import annotations

import json
import logging
import time
from typing import Any

from sprat.server.roles import Caller
from sprat.server.route import Route
from sprat.server.state import ServerState

access = logging.getLogger("sprat.access")
MAX_VALUE_CHARS = 500


class Lines(logging.Formatter):
    """`time level logger message key="value"`; control characters are written as escapes."""

    def format(self, record: logging.LogRecord) -> str:
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        facts = "".join(f" {name}={_quoted(v)}" for name, v in _facts(record).items())
        text = f"{moment}Z {record.levelname} {record.name} {_escaped(record.getMessage())}{facts}"
        return text + _trace(self, record, "\n")


class JsonLines(logging.Formatter):
    """One JSON object a line."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": round(record.created, 3),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_facts(record),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json.dumps(entry, default=str)  # ASCII: nothing in it can end the line


def set_up(*, as_json: bool) -> None:
    """Log to standard error."""
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines() if as_json else Lines())
    root = logging.getLogger()
    root.handlers = [handler]
    root.setLevel(logging.INFO)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        logging.getLogger(name).handlers = []
        logging.getLogger(name).propagate = True


def request(
    state: ServerState, scope: Any, route: Route, caller: Caller | None, status: int, began: float
) -> None:
    """One answered request. The route, not the path: a path holds ids, which nobody counts."""
    seconds = time.perf_counter() - began
    state.seen(route, status, seconds)
    if access.isEnabledFor(logging.INFO):
        access.info(
            "request",
            extra={
                "facts": {
                    "method": scope["method"],
                    "route": route.path,
                    "status": status,
                    "ms": round(seconds * 1000, 1),
                    "key": caller.key_id if caller else "-",
                    "tenant": (caller.tenant if caller else None) or "-",
                }
            },
        )


def _facts(record: logging.LogRecord) -> dict[str, Any]:
    return getattr(record, "facts", {})


def _quoted(value: Any) -> str:
    return json.dumps(str(value)[:MAX_VALUE_CHARS]) if isinstance(value, str) else str(value)


def _escaped(text: str) -> str:
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _trace(formatter: logging.Formatter, record: logging.LogRecord, before: str) -> str:
    if not record.exc_info:
        return ""
    lines = formatter.formatException(record.exc_info).splitlines()
    return before + "\n".join(f"  | {_escaped(line)}" for line in lines)
