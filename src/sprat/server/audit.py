"""The audit log: who did what that mattered. One log line and one document an act, kept 90 days.

Scaling decisions have a log of their own in the store, with their reasons.
"""

from __future__ import annotations

import logging
import os
import time
from typing import Any

from sprat.core import jsontext, model
from sprat.server.roles import Caller
from sprat.store.backend import Backend

KIND = "audit"
FIELDS = {"act", "subject", "key", "at"}
KEEP_SECONDS = 90 * 86400.0

log = logging.getLogger("sprat.audit")


def note(backend: Backend, caller: Caller, act: str, subject: str, **details: Any) -> None:
    """Keep an act, in the part of the store that it happened in."""
    micros = time.time_ns() // 1000
    facts = {"act": act, "subject": subject, "key": caller.key_id, "at": micros / 1e6, **details}
    log.info("act", extra={"facts": {**facts, "tenant": caller.tenant or "-"}})
    backend.put(KIND, _name(micros), jsontext.dumps(facts), 0, KEEP_SECONDS)


def _name(micros: int) -> str:
    """In order of time: acts of the same millisecond too."""
    return f"{micros // 1000:012x}{micros % 1000:03x}{os.urandom(6).hex()}"


def page(backend: Backend, limit: int, after: str | None) -> list[dict[str, Any]]:
    """Acts, oldest first. What cannot be read is left out: it hides no other entry."""
    found: list[dict[str, Any]] = []
    while len(found) < limit and (documents := backend.documents(KIND, limit, after)):
        found += [act for one in documents if (act := _read(one)) is not None]
        after = documents[-1].name
    return found[:limit]


def _read(document: model.Document) -> dict[str, Any] | None:
    try:
        act = jsontext.loads(document.body)
    except (ValueError, RecursionError):
        return None
    return {"id": document.name, **act} if isinstance(act, dict) and set(act) >= FIELDS else None
