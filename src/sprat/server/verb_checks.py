"""Checks on the arguments of verbs that come over the wire, before a store sees them.

Inside a process `pool.py` and `registry.py` check; what comes from elsewhere is checked here, by
the name of the parameter.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprat.core import item_filter, jsontext, model, payload
from sprat.core.errors import InvalidInput
from sprat.store.backend import ClaimRef, WorkerRef
from sprat.store.pool import MAX_CLAIM
from sprat.store.workers import MAX_LEASE_SECONDS

MAX_PAGE = 10_000
MAX_ID_CHARS = 128
MAX_TEXT = 1 << 20
MAX_INPUTS = 64 * 1024  # of a decision: metrics and pages of decisions read many at a time
MIN_RATE, MAX_RATE = 1e-6, 1e9  # of a bucket, per second; a wait is the quotient of two of these


def check(arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a verb, or InvalidInput."""
    return {
        name: value if value is None or name not in BY_NAME else BY_NAME[name](value)
        for name, value in arguments.items()
    }


def item_id(value: Any) -> str:
    return payload.label(value, "item id") or ""


def json_text(text: str, what: str) -> str:
    """The text as it came, if it is JSON that `payload.encode` could have made, give or take white
    space. It is parsed once, and not written again; what does not pass so goes the longer way,
    which takes text that only white space and escapes make too long, and says what is wrong."""
    try:
        encoded = text.encode()
        if len(encoded) <= payload.MAX_BYTES:
            value = msgspec.json.decode(encoded)
            if encoded.count(b"[") + encoded.count(b"{") > payload.MAX_DEPTH:
                payload.check_plain(value, payload.MAX_DEPTH)
            return text
    except (msgspec.DecodeError, ValueError, RecursionError):
        pass
    try:
        value = jsontext.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInput(f"the {what} is not JSON text") from None
    payload.encode(value, what)
    return text


def _new_items(items: Any) -> tuple[model.NewItem, ...]:
    if not items:
        raise InvalidInput("there is nothing to push: send at least one item")
    return tuple(_new_item(one) for one in items)


def _new_item(item: model.NewItem) -> model.NewItem:
    return item.replace(
        id=item_id(item.id),
        data=json_text(item.data, "payload"),
        max_retries=payload.whole(item.max_retries, "max_retries", 1, 1000),
        priority=payload.whole(item.priority, "priority", -(1 << 31), (1 << 31) - 1),
        delay=payload.seconds(item.delay, "delay"),
        tenant=payload.label(item.tenant, "tenant"),
        group=payload.label(item.group, "group"),
        key=payload.label(item.key, "key"),
        task=payload.task_name(item.task),
    )


def _settlement(one: model.Settlement) -> model.Settlement:
    if one.outcome not in model.OUTCOMES:
        raise InvalidInput(f"unknown outcome {one.outcome!r}: one of {', '.join(model.OUTCOMES)}")
    if one.seconds is not None:
        payload.seconds(one.seconds, "the run time")
    item_id(one.item_id)
    _token(one.token)
    payload.seconds(one.delay, "delay")
    if one.result is not None:
        json_text(one.result, "result")
    return one if one.error is None else one.replace(error=payload.error_text(one.error))


def _claim(claim: Any) -> Any:
    """A claim to prove, or how many to make."""
    if isinstance(claim, ClaimRef):
        return ClaimRef(item_id=item_id(claim.item_id), token=_token(claim.token))
    return payload.whole(claim, "the number of items to claim", 0, MAX_CLAIM)


def _token(token: str | None) -> str | None:
    return None if token is None else payload.label(token, "token")


def _worker(worker: Any) -> Any:
    """A registration, or a reference to a worker."""
    if isinstance(worker, WorkerRef):
        payload.worker_id(worker.worker_id)
        return worker
    if not payload.seconds(worker.lease_seconds, "lease_seconds", MAX_LEASE_SECONDS):
        raise InvalidInput("lease_seconds must be more than 0")
    if worker.pool_id is not None:
        payload.pool_name(worker.pool_id)
    payload.metadata(worker.metadata)
    return worker.replace(
        worker_id=payload.worker_id(worker.worker_id),
        host=payload.error_text(worker.host),
        capabilities=payload.capabilities(worker.capabilities),
        tasks=tuple(payload.task_name(one) or "" for one in _few(worker.tasks, "tasks")),
        started_at=None,
    )


def _decision(decision: model.Decision) -> model.Decision:
    if len(payload.encode(dict(decision.inputs), "inputs")) > MAX_INPUTS:
        raise InvalidInput(
            f"the inputs of a decision are at most {MAX_INPUTS:,} characters of JSON"
        )
    return decision.replace(
        pool=payload.pool_name(decision.pool),
        group=payload.label(decision.group, "group"),
        policy=payload.error_text(decision.policy),
        direction=payload.direction(decision.direction),
        reason=payload.error_text(decision.reason),
        current=payload.whole(decision.current, "current", 0, 1_000_000),
        desired=payload.whole(decision.desired, "desired", 0, 1_000_000),
        launch=payload.whole(decision.launch, "launch", 0, 10_000),
        max_workers=payload.whole(decision.max_workers, "max_workers", 0, 1_000_000),
        drain=tuple(payload.worker_id(one) for one in decision.drain),
        capabilities=payload.capabilities(decision.capabilities),
        start_deadline_seconds=payload.seconds(decision.start_deadline_seconds, "the deadline"),
    )


def _filter(which: Any) -> Any:
    """Which workers, or which items."""
    if isinstance(which, model.ItemFilter):
        return item_filter.checked(which)
    statuses = (which.status,) if isinstance(which.status, str) else which.status or ()
    if unknown := set(statuses) - set(model.WORKER_STATUSES):
        raise InvalidInput(f"unknown worker status {sorted(unknown)[0]!r}")
    if which.stale_threshold_seconds is not None:
        payload.seconds(which.stale_threshold_seconds, "stale_threshold_seconds")
    return which.replace(
        capability=payload.label(which.capability, "capability"),
        pool_id=None if which.pool_id is None else payload.pool_name(which.pool_id),
    )


def _status(status: str) -> str:
    if status not in (*model.WORKER_STATUSES, *model.ITEM_STATUSES):
        raise InvalidInput(f"unknown status {status!r}")
    return status


def _settings(text: str) -> str:
    from sprat.config import settings

    given = jsontext.loads(json_text(text, "text of the settings"))
    if not isinstance(given, dict):
        raise InvalidInput("settings are the JSON text of one object")
    after = settings.changed(model.PoolSettings(), given)
    return jsontext.dumps(after.as_dict())


def _document_body(body: str) -> str:
    if len(body) > MAX_TEXT or "\0" in body:
        raise InvalidInput(f"a document is text of at most {MAX_TEXT:,} characters")
    try:
        value = jsontext.loads(body)
    except RecursionError:
        raise InvalidInput(f"the document is nested more than {payload.MAX_DEPTH} levels") from None
    except ValueError:
        return body  # any text may be a document
    payload.encode(value, "document")
    return body


def _of_bucket(value: float) -> float:
    if not MIN_RATE <= value <= MAX_RATE:
        raise InvalidInput(
            f"the rate, the burst and the amount of a bucket are {MIN_RATE:g} to {MAX_RATE:g} each"
        )
    return value


def _few(values: Any, what: str, most: int = payload.MAX_IDS) -> Any:
    """Each of these costs a look into the store, in a thread that other requests wait for."""
    if len(values) > most:
        raise InvalidInput(f"these are {len(values):,} {what}, more than {most:,}: send fewer")
    return values


def _ids(ids: Any) -> tuple[str, ...]:
    return tuple(item_id(one) for one in _few(ids, "item ids"))


def _marked(ids: Any) -> tuple[str, ...]:
    """Ids that are only compared with those of the items of one worker."""
    return tuple(item_id(one) for one in _few(ids, "item ids", MAX_PAGE))


BY_NAME: dict[str, Any] = {
    "pool": payload.pool_name,
    "items": _new_items,
    "worker": _worker,
    "worker_id": payload.worker_id,
    "worker_ids": lambda ids: tuple(payload.worker_id(one) for one in _few(ids, "worker ids")),
    "item_id": item_id,
    "item_ids": _ids,
    "started": _marked,
    "known": _marked,
    "after": lambda name: payload.label(name, "cursor"),
    "start": _claim,
    "claim": _claim,
    "holding": lambda claims: tuple(_claim(one) for one in _few(claims, "claims")),
    "settlements": lambda ended: tuple(_settlement(one) for one in _few(ended, "settlements")),
    "checkpoint": lambda text: json_text(text, "checkpoint"),
    "metadata": lambda text: json_text(text, "metadata"),
    "progress": lambda part: payload.seconds(part, "progress", 1.0),
    "note": payload.error_text,
    "reason": payload.error_text,
    "status": _status,
    "limit": lambda limit: payload.whole(limit, "limit", 1, MAX_PAGE),
    "seconds": lambda seconds: payload.seconds(seconds, "seconds"),
    "window": lambda seconds: payload.seconds(seconds, "window"),
    "threshold": lambda seconds: payload.seconds(seconds, "threshold"),
    "max_workers": lambda n: payload.whole(n, "max_workers", 0, 1_000_000),
    "version": lambda n: payload.whole(n, "version", -1, 1 << 53),
    "group": lambda group: group if group == model.NO_GROUP else payload.label(group, "group"),
    "settings": _settings,
    "decision": _decision,
    "which": _filter,
    "kind": lambda kind: payload.label(kind, "kind"),
    "name": lambda name: payload.label(name, "name"),
    "body": _document_body,
    "amount": _of_bucket,
    "rate": _of_bucket,
    "burst": _of_bucket,
}
