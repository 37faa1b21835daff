"""The audit log: who did what that mattered. One log line and one document an act, kept 90 days.

Scaling decisions have a log of their own in the store, with their reasons.
"""

from __future__ import annotations

import logging
import time
from typing import Any

from sprat import jsontext, payload
from sprat.backend import Backend
from sprat.orchestrator.roles import Caller

KIND = "audit"
KEEP_SECONDS = 90 * 86400.0

log = logging.getLogger("sprat.audit")


def note(backend: Backend, caller: Caller, act: str, subject: str, **details: Any) -> None:
    """Keep an act, in the part of the store that it happened in."""
    facts = {"act": act, "subject": subject, "key": caller.key_id, "at": time.time(), **details}
    log.info("act", extra={"facts": {**facts, "tenant": caller.tenant or "-"}})
    backend.put(KIND, payload.new_id(), jsontext.dumps(facts), 0, KEEP_SECONDS)


def page(backend: Backend, limit: int, after: str | None) -> list[dict[str, Any]]:
    """Acts, oldest first."""
    found = backend.documents(KIND, limit, after)
    return [{"id": one.name, **jsontext.loads(one.body)} for one in found]
