"""Webhooks: a signed request fires a trigger. The rules are here; listener.py serves them over
HTTP, function.py behind somebody's gateway, and the orchestrator may do the same.

    POST /triggers/NAME
    Sprat-Timestamp: seconds since 1970
    Sprat-Signature: v2=HMAC-SHA256(secret, timestamp + "\\n" + NAME + "\\n" + body), in hexadecimal

The name is part of it: a request for one trigger fires no other that has the same secret.

The secret is in the environment of who answers, under the name that the trigger gives. A request
is good for WINDOW_SECONDS around its timestamp, and once: the store keeps its signature meanwhile.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from typing import Any

from sprat.config.trigger import WEBHOOK, Trigger
from sprat.core import jsontext
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.core.runtime import runtime
from sprat.store.store import Store
from sprat.triggers import firing, registry

PATH = "/triggers/"
TIMESTAMP = "Sprat-Timestamp"
SIGNATURE = "Sprat-Signature"
WINDOW_SECONDS = 300.0
MAX_BODY_BYTES = 64 * 1024
MIN_SECRET_CHARS = 16
SEEN = "webhook-seen"
EVENT = "webhook"
_OLD = (
    "a v1 signature does not cover the trigger's name: "
    "sign timestamp, name and body, each on a line of its own, as v2"
)


class WebhookAnswer(Record):
    """What to tell the one who asked: an HTTP status and a JSON document."""

    status: int
    said: Mapping[str, Any]


def sign(secret: str, name: str, *, timestamp: int, body: bytes) -> str:
    """The value of the signature header of a request to the trigger of this name."""
    message = f"{timestamp}\n{name}\n".encode() + body
    return "v2=" + hmac.new(secret.encode(), message, hashlib.sha256).hexdigest()


def secret_of(trigger: Trigger, environment: Mapping[str, str]) -> str:
    """The secret of a webhook trigger, or InvalidInput."""
    if trigger.type != WEBHOOK or trigger.secret_env is None:
        raise InvalidInput(f"trigger {trigger.name} is no webhook but a {trigger.type} trigger")
    secret = environment.get(trigger.secret_env, "")
    if len(secret) < MIN_SECRET_CHARS:
        wrong = "is not set" if not secret else f"has fewer than {MIN_SECRET_CHARS} characters"
        raise InvalidInput(f"the secret of trigger {trigger.name}, {trigger.secret_env}, {wrong}")
    return secret


def receive(
    store: Store,
    *,
    method: str,
    path: str,
    headers: Mapping[str, str],
    body: bytes,
    now: float | None = None,
    limit: float | None = None,
) -> WebhookAnswer:
    """Answer one request. Header names are matched whatever their case. What somebody without the
    secret can learn is only that they have none: unknown triggers answer as wrong signatures do."""
    if not path.startswith(PATH) or "/" in path.removeprefix(PATH):
        return _refused(404, f"there is nothing here: POST {PATH}NAME")
    if method != "POST":
        return _refused(405, "use POST")
    if len(body) > MAX_BODY_BYTES:
        return _refused(413, f"a body has at most {MAX_BODY_BYTES} bytes")
    found = {name.lower(): value for name, value in headers.items()}
    timestamp, signature = found.get(TIMESTAMP.lower(), ""), found.get(SIGNATURE.lower(), "")
    if not timestamp or not signature:
        return _refused(401, f"sign the request: {TIMESTAMP} and {SIGNATURE}")
    if not timestamp.isascii() or not timestamp.isdigit() or len(timestamp) > 12:
        return _refused(400, f"{TIMESTAMP} is seconds since 1970")
    if abs((runtime.time() if now is None else now) - int(timestamp)) > WINDOW_SECONDS:
        return _refused(401, f"{TIMESTAMP} is more than {WINDOW_SECONDS:g} seconds off")
    if signature.startswith("v1="):
        return _refused(401, _OLD)
    trigger = registry.stored(store, path.removeprefix(PATH))
    if trigger is None or not _is_signed(trigger, int(timestamp), body, signature):
        return _refused(401, "the signature is wrong")
    given = _content(body)
    if given is None:
        return _refused(400, "the body must be JSON, or empty")
    if not store.backend.put(SEEN, signature, "{}", 0, 2 * WINDOW_SECONDS):
        return _refused(409, "this request was answered before: sign a new one")
    fired = firing.fire(store, trigger, event=EVENT, extra={"body": given[0]}, limit=limit)
    return WebhookAnswer(status=_status(fired), said=fired.as_dict())


def _status(fired: firing.Fired) -> int:
    if fired.ok:
        return 200
    return 422 if fired.refused else 502


def _is_signed(trigger: Trigger, timestamp: int, body: bytes, signature: str) -> bool:
    try:
        secret = secret_of(trigger, os.environ)
    except InvalidInput as error:
        import logging

        logging.getLogger("sprat").warning("%s", error)  # ours to mend, not theirs to know
        return False
    wanted = sign(secret, trigger.name, timestamp=timestamp, body=body)
    return hmac.compare_digest(wanted.encode(), signature.encode("utf-8", "replace"))


def _content(body: bytes) -> tuple[Any] | None:
    try:
        return (jsontext.loads(body.decode()) if body.strip() else None,)
    except (ValueError, RecursionError):
        return None


def _refused(status: int, why: str) -> WebhookAnswer:
    return WebhookAnswer(status=status, said={"error": why})
