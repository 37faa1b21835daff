"""The verbs of a store, each as `POST /api/v1/store/VERB`: what `sprat.store.http.backend` calls.

The parameters and answers are those of `sprat.store.backend`, taken from there. Payloads, results
and checkpoints are JSON text inside the JSON, as in the verbs. Programs of other people are better
served by the routes under /api/v1/pools.
"""

from __future__ import annotations

from typing import Any

import msgspec

from sprat.core import jsontext, model
from sprat.core.record import plain
from sprat.server import audit, auth, open_documents, pages, schemas, tenancy, verb_checks
from sprat.server.http_error import HttpError
from sprat.server.roles import ADMIN, CONTROLLER, PUSHER, ROLES, VIEWER, WORKER
from sprat.server.route import RequestCall, Response, Route
from sprat.store import default_tenant_limit
from sprat.store.backend import PROTOCOL, Backend, WorkerRef

READERS = (CONTROLLER, VIEWER)
WHO: dict[str, tuple[str, ...]] = {
    "push": (PUSHER,),
    "exchange": (WORKER,),
    "save": (WORKER,),
    "release": (CONTROLLER,),
    "cancel": (PUSHER,),
    "requeue": (PUSHER,),
    "item": (PUSHER, WORKER, VIEWER),
    "pools_of": (PUSHER, WORKER, VIEWER),
    "items": (PUSHER, VIEWER),
    "find": (PUSHER, VIEWER),
    "counts": (PUSHER, WORKER, *READERS),
    "wait": (WORKER, CONTROLLER),
    "pools": ROLES,
    "pool_state": ROLES,
    "configure": (ADMIN,),
    "pause": (ADMIN,),
    "hold_off": (WORKER,),
    "request_check": (CONTROLLER,),
    "begin_check": (CONTROLLER,),
    "purge": (ADMIN,),
    "delete_pool": (ADMIN,),
    "register": (WORKER,),
    "heartbeat": (WORKER,),
    "keep_alive": (WORKER, CONTROLLER),
    "touch": (WORKER, CONTROLLER),
    "lost": (WORKER,),
    "update_status": (WORKER, CONTROLLER),
    "worker": (WORKER, *READERS),
    "workers": READERS,
    "reap": (CONTROLLER,),
    "observe": (WORKER, *READERS),
    "record": (CONTROLLER,),
    "decisions": READERS,
    "stats": READERS,
    "history": READERS,
    "totals": READERS,
    "document": (WORKER, *READERS),
    "documents": (ADMIN,),
    "put": (CONTROLLER,),
    "take": (ADMIN,),
    "describe": ROLES,
}
# GLOBAL_QPS_LIMIT does not count what keeps running work going; of `exchange`, the claim counts.
UNLIMITED = {"exchange", "save", "heartbeat", "keep_alive", "touch", "lost", "update_status"}
# For the audit log: which argument says what was changed. `put` and `update_status` have rules.
ACTS = dict.fromkeys(
    ("cancel", "requeue", "release", "configure", "pause", "hold_off", "purge", "delete_pool"),
    "pool",
)
ACTS["take"] = "name"
MAX_HOLD_OFF_SECONDS = 3600.0  # longer is a pause, which is for admins
PAGED: dict[str, Any] = {
    "items": pages.items,
    "find": pages.finds,
    "documents": pages.documents,
}
ADDING = {"push", "requeue", "pause", "configure"}  # work may be ready that nobody works on
WAKING = {"cancel", "release", "exchange"}


class Recover(msgspec.Struct, forbid_unknown_fields=True):
    """After a lost answer: the claims that the worker knows of."""

    pool: str
    worker: schemas.of_record(WorkerRef)  # type: ignore[valid-type]  # made at run time
    known: list[str] = []


def routes() -> list[Route]:
    """Every verb, and what an HTTP client needs besides."""
    return [_route(name) for name in WHO] + [
        Route(
            method="POST",
            path="/api/v1/store/recover",
            handler=_recover,
            name="store_recover",
            tag="store",
            summary="After a lost answer to exchange: hand back claims that the worker does not "
            "know it has. How many.",
            roles=(WORKER,),
            body=Recover,
            answer=msgspec.defstruct("RecoverAnswer", [("answer", schemas.Whole)]),
            errors=(404,),
        )
    ]


def _route(name: str) -> Route:
    verb = getattr(Backend, name)
    title = "".join(word.title() for word in name.split("_"))
    fields: list[Any] = [("answer", schemas.of_answer(verb))]
    if name == "register":
        fields.append(("secret", str))
    if name in ("items", "documents"):
        fields.append(("next", str | None))
    return Route(
        method="POST",
        path=f"/api/v1/store/{name}",
        handler=_wait if name == "wait" else _Verb(name),
        name=f"store_{name}",
        tag="store",
        summary=" ".join((verb.__doc__ or name).split()),
        roles=WHO[name],
        body=schemas.of_verb(verb),
        answer=msgspec.defstruct(f"{title}Answer", fields),
        errors=(404, 409),
        limited=name not in UNLIMITED,
    )


class _Verb:
    """Checks the arguments, calls the verb, and wakes the long polls that wait for its effect."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.readers = schemas.readers(getattr(Backend, name))

    async def __call__(self, call: RequestCall) -> Any:
        return await call.run(self.run, call)

    def run(self, call: RequestCall) -> Any:
        arguments = _arguments(call, self.readers)
        if self.name == "register":
            _may_register(call)
        if self.name == "hold_off" and not call.caller.is_admin:
            arguments["seconds"] = min(arguments["seconds"], MAX_HOLD_OFF_SECONDS)
        if self.name == "exchange":
            has_news = bool(arguments["settlements"]) or arguments["start"] is not None
            allowed = auth.claims_allowed(call.state, arguments["claim"], has_news=has_news)
            arguments["claim"] = allowed
        if self.name in PAGED:
            return _page(call, self.name, arguments)
        if self.name == "push":
            default_tenant_limit.before_push(call.backend, **arguments, tenant=call.caller.tenant)
        answer = getattr(call.backend, self.name)(**arguments)
        _notify(call, self.name, arguments, answer)
        if (subject := _subject(call, self.name, arguments)) is not None:
            audit.note(call.backend, call.caller, self.name, subject, answer=answer)
        reply = {"answer": plain(_for_eyes_of(call, self.name, answer))}
        if self.name == "register":
            worker_id = call.full_worker(answer.worker_id)
            reply["secret"] = call.state.secrets.of(worker_id, answer.incarnation)
        return reply


def _subject(call: RequestCall, name: str, arguments: dict[str, Any]) -> str | None:
    """What an act is about that belongs into the audit log; None for any other verb, for routine
    writes and for what a worker says about itself."""
    if name in ACTS:
        return str(arguments[ACTS[name]])
    if name == "put" and not open_documents.is_routine(call.caller, arguments["kind"]):
        return f"{arguments['kind']} {arguments['name']}"
    if name == "reap" and arguments["threshold"] is not None:
        return arguments["pool"] or "every pool"
    if name == "update_status" and call.proven(arguments["worker"]) is None:
        return f"{arguments['worker'].worker_id} {arguments['status']}"
    return None


def _may_register(call: RequestCall) -> None:
    if call.headers.get(b"sprat-protocol") != PROTOCOL.encode():
        raise HttpError(
            409,
            "store_mismatch",
            "the orchestrator and this worker have versions of sprat that cannot work together: "
            "install the orchestrator's version where the worker runs",
        )
    if call.state.is_leaving:
        raise call.state.leaving()


def _arguments(call: RequestCall, readers: dict[str, Any]) -> dict[str, Any]:
    given = {name: read(getattr(call.body, name)) for name, read in readers.items()}
    arguments = verb_checks.check(given)
    if "kind" in arguments:
        open_documents.check(call.caller, arguments)
    if isinstance(arguments.get("worker"), WorkerRef):
        others = (CONTROLLER,) if "reason" in arguments else ()
        arguments["worker"] = call.speaks_for(arguments["worker"], *others)
    return arguments


def _page(call: RequestCall, name: str, arguments: dict[str, Any]) -> Response:
    """A list, which may end before its limit: `next` (of `find`: `after`) then goes on."""
    limit, after = arguments.pop("limit"), arguments.pop("after")
    read = PAGED[name](call.backend, **arguments)

    def show(entry: Any) -> Any:
        return plain(_for_eyes_of(call, "item", entry))

    cursor = "name" if name == "documents" else "id"
    texts, following = pages.page(read, limit, after, show, cursor=cursor)
    entries = pages.listed(texts)
    if name == "find":
        ends = jsontext.dumps({"after": following}).encode()
        return Response(body=b'{"answer":{"items":' + entries + b"," + ends[1:] + b"}")
    is_full = len(texts) == limit
    ends = jsontext.dumps({"next": None if is_full else following}).encode()
    return Response(body=b'{"answer":' + entries + b"," + ends[1:])


def _for_eyes_of(call: RequestCall, name: str, answer: Any) -> Any:
    """A token is the right to settle: only claiming tells it. Where the data is kept, is for
    admins to know."""
    if call.caller.is_admin or name not in ("item", "describe"):
        return answer
    if name == "describe":
        return {one: answer[one] for one in tenancy.PUBLIC_FACTS if one in answer}
    return answer.replace(token=None) if isinstance(answer, model.WorkItem) else answer


def _notify(call: RequestCall, name: str, arguments: dict[str, Any], answer: Any) -> None:
    long_polls = call.state.long_polls
    if name in ADDING:
        call.state.added(call.full_pool(arguments["pool"]))
    elif name in WAKING:
        long_polls.changed(call.full_pool(arguments["pool"]))
    elif name in ("update_status", "register"):
        long_polls.worker_changed(call.full_worker(arguments["worker"].worker_id))
        if name == "register" and arguments["worker"].tasks and answer.pool_id is not None:
            long_polls.changed(call.full_pool(answer.pool_id))  # parked items may be ready
    elif name == "reap":
        for worker_id in answer.workers:
            long_polls.worker_changed(call.full_worker(worker_id))
    elif name == "record" and answer is not None:
        for worker_id in answer.drained:
            long_polls.worker_changed(call.full_worker(worker_id))


async def _wait(call: RequestCall) -> Any:
    arguments = await call.run(_arguments, call, schemas.readers(Backend.wait))
    worker = arguments["worker"]
    if worker is not None:
        full = await call.run(call.full_worker, worker.worker_id)
        worker = worker.replace(worker_id=full)
    seconds = min(arguments["seconds"], call.state.options.max_wait_seconds)
    pool = call.full_pool(arguments["pool"])
    return {"answer": await call.state.long_polls.wait(pool, worker, seconds, call.caller.tenant)}


async def _recover(call: RequestCall) -> Any:
    return {"answer": await call.run(recover, call)}


def recover(call: RequestCall) -> int:
    """Hand back what this worker holds in the pool without knowing it."""
    arguments = _arguments(call, {"pool": str, "worker": schemas.reader(WorkerRef), "known": tuple})
    pool, worker, known = arguments["pool"], arguments["worker"], set(arguments["known"])
    backend = call.backend
    if (found := backend.worker(worker.worker_id)) is None or found.claims <= len(known):
        return 0
    lost: list[model.Settlement] = []
    page = backend.items(pool, model.CLAIMED, pages.STEP, None)
    while page:
        lost += [
            model.Settlement(item_id=item.id, token=item.token, outcome=model.HAND_BACK)
            for item in page
            if item.claimed_by == worker.worker_id and item.id not in known
        ]
        page = backend.items(pool, model.CLAIMED, pages.STEP, page[-1].id)
    return sum(backend.exchange(pool, settlements=lost).settled) if lost else 0
