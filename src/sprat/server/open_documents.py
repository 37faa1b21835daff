"""The documents of a store that can be read and written over HTTP, and by which roles.

Every other kind (API keys, the audit log, what the server knows about workers) is the server's own:
over HTTP it does not exist, for admins either. A new kind that clients need gets a line in KINDS.
"""

from __future__ import annotations

from typing import Any

from sprat.core import jsontext
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.fleet import controller_lease, policy_input
from sprat.machines.runtime import checkpoints
from sprat.server.http_error import not_found
from sprat.server.roles import ADMIN, CONTROLLER, VIEWER, WORKER, Caller
from sprat.triggers import coalesce, registry, webhook
from sprat.triggers.events import EMPTY


class DocumentKind(Record):
    """Admins may read and write all of these. Writing is routine for the roles in `routine`: no
    entry in the audit log."""

    readers: tuple[str, ...] = ()
    routine: tuple[str, ...] = (ADMIN,)


SCALING = DocumentKind(readers=(WORKER, CONTROLLER, VIEWER), routine=(CONTROLLER,))
KINDS = {
    policy_input.KIND: SCALING,
    controller_lease.KIND: SCALING,
    registry.KIND: DocumentKind(routine=()),
    registry.DUE: DocumentKind(routine=()),
    coalesce.ASKED: DocumentKind(),
    coalesce.RUNNING: DocumentKind(),
    EMPTY: DocumentKind(),
    webhook.SEEN: DocumentKind(),
    checkpoints.KIND: DocumentKind(),
}


def check(caller: Caller, arguments: dict[str, Any]) -> None:
    """Refuse a verb about documents that this caller may not use, or that would store a trigger
    which cannot be one."""
    kind = KINDS.get(arguments["kind"])
    is_write = "body" in arguments
    if kind is None or not caller.may(kind.routine if is_write else kind.readers):
        raise not_found()
    if is_write and arguments["body"] is not None:
        _check_body(arguments)


def is_routine(caller: Caller, kind: str) -> bool:
    """Whether this caller writes such documents all the time."""
    return not caller.roles.isdisjoint(KINDS[kind].routine)


def _check_body(arguments: dict[str, Any]) -> None:
    kind, name, body = (arguments[one] for one in ("kind", "name", "body"))
    if kind == registry.KIND and registry.read(body).name != name:
        raise InvalidInput(f"the trigger in document {name!r} has another name")
    if kind == registry.DUE and not _is_number(body):
        raise InvalidInput("the due time of a trigger must be a number of seconds")


def _is_number(body: str) -> bool:
    try:
        return type(jsontext.loads(body)) in (int, float)
    except (ValueError, RecursionError):
        return False
