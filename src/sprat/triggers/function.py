"""A trigger as a function of somebody's cloud: `sprat.triggers.handler(event, context)`.

What it is called with decides what it does; whatever that is, it runs inside the call and ends
before the function's time is over:

- a request (API Gateway, function URL): a webhook, signed as always
- messages (SQS): each names a trigger or a pool; those that failed are reported to be sent again
- a schedule (EventBridge): a tick, or the trigger that its detail names
- anything else, a plain mapping: `{"trigger": NAME}`, `{"pool": NAME}` for a pass, `{}` for a tick

The store is named by SPRAT_URL or by the sprat.yml of the working directory. The same as a
container's command: `python -m sprat.triggers`, with the event as JSON on its standard input.
"""

from __future__ import annotations

import os

from sprat.config.project_file import named_store
from sprat.config.trigger import LAMBDA, Trigger
from sprat.core import jsontext
from sprat.core.did_you_mean import did_you_mean
from sprat.core.errors import InvalidInput, SpratError
from sprat.store.open_store import open_store
from sprat.triggers import firing, registry, webhook
from sprat.triggers.tick import tick

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from sprat.store.store import Store

    Event = Mapping[str, Any]

DEFAULT_SECONDS = 60.0  # where nobody says how long a call may take
NAMES = ("trigger", "pool", "pool_id")
RESERVE_SECONDS = 2.0  # for the answer, before the function's time is over


def handler(event: Any, context: Any = None) -> dict[str, Any]:
    """Do what the event asks for. Input that means nothing raises InvalidInput, so that the cloud
    counts it as failed; a request gets its answer as a response."""
    if not isinstance(event, dict):
        raise InvalidInput(f"an event is a mapping, not {type(event).__name__}")
    url = named_store(os.environ)
    if url is None:
        raise InvalidInput("SPRAT_URL is not set, and there is no sprat.yml here: name the store")
    left = _seconds_left(context)
    with open_store(url) as store:
        if isinstance(event.get("Records"), list):
            return _messages(store, event["Records"], left)
        if "requestContext" in event:
            return _request(store, event, left)
        if event.get("source") == "aws.events" or "detail-type" in event:
            detail = event.get("detail")
            return _plain(store, detail if isinstance(detail, dict) else {}, left)
        return _plain(store, _understood(event), left)


def _understood(event: Event) -> Event:
    """A plain event as it is; one that only means something else by mistake is no tick."""
    if event and not event.keys() & set(NAMES):
        near = did_you_mean(next(iter(event)), NAMES)
        raise InvalidInput(f"an event has a trigger, a pool or nothing in it{near}")
    return event


def _seconds_left(context: Any) -> Callable[[], float]:
    """How long there still is: asked again before each step."""
    remaining = getattr(context, "get_remaining_time_in_millis", None)
    if remaining is None:
        return lambda: DEFAULT_SECONDS
    return lambda: max(0.1, remaining() / 1000 - RESERVE_SECONDS)


def _plain(store: Store, event: Event, left: Callable[[], float]) -> dict[str, Any]:
    name, pool = event.get("trigger"), event.get("pool", event.get("pool_id"))
    if name is None and pool is None:
        ticked = tick(store, limit=left())
        fired = [one.as_dict() for one in ticked.fired]
        return {"fired": fired, "woken": list(ticked.woken)}
    for value, what in ((name, "trigger"), (pool, "pool")):
        if value is not None and not isinstance(value, str):
            raise InvalidInput(f"{what} must be a name, not {value!r}")
    if pool is not None and pool not in (pools := store.pools()):
        raise InvalidInput(f"there is no pool {pool!r}{did_you_mean(pool, pools)}")
    if name is None:
        trigger = Trigger(name="pass", type=LAMBDA, pool=pool)
    else:
        trigger = registry.find(store, name)
    fired_one = firing.fire(store, trigger, event=LAMBDA, pool=pool, limit=left())
    if not fired_one.ok:
        raise SpratError(f"trigger {trigger.name} failed: {fired_one.said}")
    return fired_one.as_dict()


def _messages(store: Store, records: list[Any], left: Callable[[], float]) -> dict[str, Any]:
    """The cloud sends those again that failed. What they ask for is done once, not once each."""
    failed: list[dict[str, str]] = []
    done: dict[str, bool] = {}
    for record in records:
        body = str(record.get("body", ""))
        if body not in done:
            done[body] = _message(store, body, left)
        if not done[body]:
            failed.append({"itemIdentifier": str(record.get("messageId", ""))})
    return {"batchItemFailures": failed}


def _message(store: Store, body: str, left: Callable[[], float]) -> bool:
    try:
        said = jsontext.loads(body) if body.strip() else {}
        if not isinstance(said, dict):
            raise InvalidInput("the message is no mapping")
        _plain(store, _understood(said), left)
    except (SpratError, ValueError, RecursionError) as error:
        import logging

        logging.getLogger("sprat").warning(
            "a message was not understood: %s", jsontext.printable(str(error))
        )
        return False
    return True


def _request(store: Store, event: Event, left: Callable[[], float]) -> dict[str, Any]:
    """Both shapes of API Gateway, and function URLs."""
    http = event["requestContext"].get("http", {})
    stage = event["requestContext"].get("stage") or "$default"
    path = str(event.get("rawPath") or event.get("path") or "").removeprefix(f"/{stage}")
    answer = webhook.receive(
        store,
        method=str(http.get("method") or event.get("httpMethod") or "POST"),
        path=path,
        headers={str(k): str(v) for k, v in (event.get("headers") or {}).items()},
        body=_body(event),
        limit=left(),
    )
    return {
        "statusCode": answer.status,
        "headers": {"Content-Type": "application/json"},
        "body": jsontext.dumps(dict(answer.said)),
    }


def _body(event: Event) -> bytes:
    text = str(event.get("body") or "")
    if not event.get("isBase64Encoded"):
        return text.encode()
    import base64
    import binascii

    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        return b"\xff"  # no JSON, and signed by nobody
