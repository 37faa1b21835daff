"""Tasks: functions that push themselves. `@sprat.task` above a function, and workers run it.

A worker imports the function by name and calls it with the arguments that were pushed, so a task is
a function at the top of a module that can be imported, and its arguments are JSON.
"""

from __future__ import annotations

import os

from sprat.core import model
from sprat.core.errors import InvalidInput, Poison
from sprat.core.payload import attempts, each, encode, new_item, pool_name, task_name
from sprat.tasks import default_store, source
from sprat.tasks.ownership import Program
from sprat.worker import handlers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any, Generic, Literal, ParamSpec, TypedDict, TypeVar, Unpack, overload

    from sprat.store.pool import WorkPool
    from sprat.store.store import Store

    P = ParamSpec("P")
    R = TypeVar("R")

    class Settings(TypedDict, total=False):
        """Those of a pool, except what a task sets by itself; model.py says what they mean."""

        directory: str
        environment: Sequence[str]
        isolation: Literal["process", "none"]
        claim_ahead: int
        timeout_seconds: float | None
        retry_base_seconds: float
        retry_cap_seconds: float
        max_transient: int | None
        on_lost_contact: Literal["continue", "stop"]
        launcher: str
        launcher_options: Mapping[str, Any]
        policy: str
        policy_options: Mapping[str, Any]
        min_workers: int
        max_workers: int
        max_jobs: int
        idle_seconds: float
        heartbeat_seconds: float
        start_deadline_seconds: float
        start_on_push: bool
        tenant_limit: int | None
        tenant_limits: Mapping[str, int]
        keep_done_seconds: float | None
        keep_poisoned_seconds: float | None
        keep_cancelled_seconds: float | None
        events: Mapping[str, Sequence[str]]
else:  # `typing` is 10 ms of start-up, for every worker

    class Generic:
        def __class_getitem__(cls, _: object) -> type:
            return cls

    P = R = None

    def overload(function: object) -> object:
        return function


class Task(Generic[P, R]):
    """A function with a pool. Calling it runs it here; `push` has a worker run it."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        pool: str | None,
        name: str | None = None,
        max_attempts: int,
        settings: Mapping[str, Any],
    ) -> None:
        source.check_function(function)
        self.__wrapped__ = function
        self.__name__: str = function.__name__
        self.__qualname__: str = function.__qualname__
        self.__module__ = function.__module__
        self.__doc__ = function.__doc__
        self.pool_name = pool_name(self.__name__ if pool is None else pool)
        self.max_attempts = max_attempts
        self._name = task_name(name)
        self._settings = source.checked(settings)
        self._accepts: Callable[..., object] | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.__wrapped__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<task {self.__module__}.{self.__qualname__} of pool {self.pool_name!r}>"

    @property
    def name(self) -> str:
        """What its jobs are stored under: `name=`, or `module:function`."""
        if self._name is None:
            try:
                self._name = source.home(self)[0]
            except InvalidInput:  # no worker could import it: it runs inline only
                return f"{self.__module__}:{self.__qualname__}"
        return self._name

    def push(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Store a call with these arguments; its id, once it is on disk."""
        return Pusher(self).push(*args, **kwargs)

    def push_many(self, calls: Iterable[Any]) -> list[str]:
        """Store many calls, all or none, in one step. A tuple is the arguments of one call, a
        dict its arguments by name, anything else its only argument."""
        return Pusher(self).push_many(calls)

    def options(
        self,
        *,
        priority: int = 0,
        delay: float = 0.0,
        key: str | None = None,
        tenant: str | None = None,
        group: str | None = None,
        max_attempts: int | None = None,
        max_retries: int | None = None,
        connection: object = None,
    ) -> Pusher[P]:
        """`task.options(priority=5).push(...)`: the options of `WorkPool.push`. With a `connection`
        the call is stored in your own transaction: call `task.pool().start_fleet()` after it."""
        return Pusher(
            self,
            connection=connection,
            priority=priority,
            delay=delay,
            key=key,
            tenant=tenant,
            group=group,
            max_attempts=self.max_attempts
            if max_attempts is max_retries is None
            else attempts(max_attempts, max_retries),
        )

    def pool(self, store: str | Store | None = None) -> WorkPool:
        """The task's pool, in this store or in the one in use."""
        where = (
            default_store.place(store).store if store is None or isinstance(store, str) else store
        )
        return where.pool(self.pool_name)

    def settings(self) -> Mapping[str, Any]:
        """The pool settings that the task brings along, except where its code is."""
        return {"start_on_push": True, **self._settings}

    def program(self) -> Program:
        """Where workers find the function."""
        handler, directory, file = source.home(self)
        directory = self._settings.get("directory", directory)
        host = os.uname().nodename
        return Program.of((self.name, handler, file, directory, host))

    def run_item(self, item: model.WorkItem) -> Any:
        """For workers: call the function with what was pushed."""
        args, kwargs = source.pushed(item.data)
        try:
            self.check(args, kwargs)
        except InvalidInput as error:
            raise Poison(f"these are not arguments of {self.__name__}: {error}") from None
        return self.__wrapped__(*args, **kwargs)

    def check(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse arguments that the function does not take."""
        if self._accepts is None:
            self._accepts = source.twin(self.__wrapped__)
        try:
            self._accepts(*args, **kwargs)
        except TypeError as error:
            raise InvalidInput(str(error)) from None


class Pusher(Generic[P]):
    """A task with options for what is pushed."""

    def __init__(self, task: Task[P, Any], *, connection: object = None, **options: Any) -> None:
        self._task = task
        self._connection = connection
        self._options = {"max_attempts": task.max_attempts, **options}
        new_item(None, **self._options)  # refuses bad options now, not at the first push

    def push(self, *args: P.args, **kwargs: P.kwargs) -> str:
        """Store a call with these arguments; its id, once it is on disk."""
        connection = self._connection
        if connection is None and "connection" in kwargs and not self._takes("connection"):
            connection = kwargs.pop("connection")
        return self._push([self._call(args, kwargs)], connection)[0]

    def push_many(self, calls: Iterable[Any]) -> list[str]:
        """Store many calls, all or none, in one step: see `Task.push_many`."""
        if self._options.get("key") is not None:
            raise InvalidInput("a key names one item: push_many takes none")
        calls = [self._call(*source.arguments(call)) for call in each(calls)]
        return self._push(calls, self._connection)

    def _takes(self, name: str) -> bool:
        """Whether the function has a parameter of this name."""
        code = source.unwrapped(self._task.__wrapped__).__code__
        return name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]

    def _call(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Mapping[str, Any]:
        self._task.check(args, kwargs)
        call = {"args": list(args), "kwargs": dict(kwargs)}
        encode(call, f"call of {self._task.__name__}")
        return call

    def _push(self, calls: Sequence[Mapping[str, Any]], connection: object) -> list[str]:
        if handlers.is_importing():
            raise InvalidInput(
                f"{self._task.__module__} pushes while a worker imports it: put the code that "
                "pushes under if __name__ == '__main__':"
            )
        place = default_store.place()
        place.adopt(self._task)
        name = self._task.name
        items = [new_item(call, task=name, **self._options) for call in calls]
        pool = place.store.pool(self._task.pool_name)
        ids = pool.push_items(items, connection=connection)
        place.pushed(items)
        return ids


@overload
def task(function: Callable[P, R], /) -> Task[P, R]: ...
@overload
def task(  # noqa: F811  (ruff does not see that this is typing's overload)
    *,
    pool: str | None = None,
    name: str | None = None,
    max_attempts: int | None = None,
    max_retries: int | None = None,
    **settings: Unpack[Settings],
) -> Callable[[Callable[P, R]], Task[P, R]]: ...
def task(  # noqa: F811
    function: Callable[..., Any] | None = None,
    /,
    *,
    pool: str | None = None,
    name: str | None = None,
    max_attempts: int | None = None,
    max_retries: int | None = None,
    **settings: Any,
) -> Any:
    """Make a function a task: `@sprat.task`, or `@sprat.task(pool="papers", timeout_seconds=60)`
    with any setting of a pool. The pool is named after the function unless `pool=` says otherwise.
    Jobs store the task's name, `module:function` unless `name=` says otherwise: with a name of its
    own a function can be moved or renamed while jobs wait. A job is started up to `max_attempts`
    times (default 3; `max_retries` is an alias)."""
    most = attempts(max_attempts, max_retries)

    def decorate(function: Callable[P, R]) -> Task[P, R]:
        return Task(function, pool=pool, name=name, max_attempts=most, settings=settings)

    return decorate if function is None else decorate(function)
