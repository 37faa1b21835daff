"""One route: who may call it, what goes in, what comes out, and the function in between."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from sprat.core.record import Record
from sprat.server import worker_secret
from sprat.server.http_error import HttpError
from sprat.server.roles import Caller
from sprat.server.state import ServerState
from sprat.server.tenancy import TenantBackend
from sprat.store.backend import Backend, WorkerRef


class RequestCall:
    """One request that was let in, and the store as its caller may see it."""

    __slots__ = ("backend", "body", "caller", "headers", "path", "query", "state", "stream")

    def __init__(
        self,
        *,
        state: ServerState,
        caller: Caller,
        backend: Backend,
        path: Mapping[str, str],
        headers: dict[bytes, bytes],
        query: Any = None,
        body: Any = None,
        stream: Any = None,
    ) -> None:
        self.state = state
        self.caller = caller
        self.backend = backend
        self.path = path
        self.headers = headers
        self.query = query
        self.body = body
        self.stream = stream  # the body of a route that reads it piece by piece

    async def run(self, step: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run a blocking step (a verb of the store) in one of the threads."""
        tenant = self.caller.tenant
        return await self.state.threads.run_for(tenant, step, *arguments, **options)

    def full_pool(self, pool: str) -> str:
        """A pool's name as the store has it."""
        return self.backend.pool_in(pool) if isinstance(self.backend, TenantBackend) else pool

    def full_worker(self, worker_id: str) -> str:
        """A worker's id as the store has it."""
        inner = self.backend
        return inner.worker_in(worker_id) if isinstance(inner, TenantBackend) else worker_id

    def speaks_for(self, worker: WorkerRef, *others: str) -> WorkerRef:
        """The worker's current incarnation, proven by its secret. Admins need none, nor do keys
        with one of these other roles. Blocks."""
        if self.caller.may(others):
            return worker
        if worker_secret.HEADER not in self.headers:
            raise HttpError(403, "no_secret", "only the worker itself may do this: send its secret")
        proven = self.proven(worker)
        if proven is None:
            raise HttpError(403, "wrong_secret", "this is not the secret of this worker")
        return worker.replace(incarnation=proven)

    def proven(self, worker: WorkerRef) -> int | None:
        """The incarnation of this worker whose secret came with the request. Blocks."""
        secret = self.headers.get(worker_secret.HEADER, b"").decode("latin-1")
        found = self.state.secrets.proven(self.full_worker(worker.worker_id), secret)
        return found if worker.incarnation in (None, found) else None


Handler = Callable[[RequestCall], Awaitable[Any]]


class Response(Record):
    """An answer other than 200 with JSON."""

    status: int = 200
    body: bytes = b""
    media_type: str = "application/json"
    headers: Mapping[str, str] = {}


class Route(Record):
    """A line of the tables in `routes/`. The OpenAPI document is made of these."""

    method: str
    path: str
    handler: Handler
    summary: str
    tag: str
    name: str  # the operation's id
    roles: tuple[str, ...] | None  # None: no key is needed
    body: Any = None  # the shape of the JSON body
    query: Any = None
    answer: Any = None  # the shape of the answer, None: no content, or another media type
    errors: tuple[int, ...] = ()  # besides those that every route has
    media_type: str = "application/json"
    takes: str = "application/json"  # the body's media type; another one is read as a stream
    empty: bool = False  # whether the answer may be 204
    limited: bool = True  # whether GLOBAL_QPS_LIMIT counts it
    example: Any = None


class Table:
    """The routes of one family, written as decorators over their functions."""

    def __init__(self, tag: str) -> None:
        self.tag = tag
        self.routes: list[Route] = []

    def __call__(self, method: str, path: str, **about: Any) -> Callable[[Handler], Handler]:
        """The function's name is the operation's, and its docstring the summary."""

        def add(handler: Handler) -> Handler:
            self.routes.append(
                Route(
                    method=method,
                    path=path,
                    handler=handler,
                    name=handler.__name__,
                    summary=" ".join((handler.__doc__ or "").split()),
                    tag=self.tag,
                    **about,
                )
            )
            return handler

        return add
