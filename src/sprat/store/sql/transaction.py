"""What a verb works with: the statements of one transaction, its time, and what it sums up."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from types import ModuleType
    from typing import Any

    from sprat.core.counters import Counters


class Statements:
    """The SQL text of one dialect: `statements.pools.STATE` is the constant STATE in the module
    `pools` of its package. A module is imported when a verb needs it."""

    def __init__(self, package: str) -> None:
        self._package = package

    def __getattr__(self, family: str) -> ModuleType:
        name = f"{self._package}.{family}"
        __import__(name)
        module = sys.modules[name]
        setattr(self, family, module)
        return module


class SqlTransaction:
    """`run` executes a statement. There is one cursor: running a statement ends the one before
    it, so its rows have to be fetched by then."""

    __slots__ = ("ends",)
    sql: Statements
    run: Callable[..., Any]
    run_many: Callable[..., Any]  # the same statement for each row of values
    now: float  # the store's time, read once
    tally: Counters  # what happens to items, written once at the end
    again = False  # an earlier try may have been committed: its reply was lost
    ends: bool  # this may be the last write of its process: hold no statistics back

    def one(self, statement: str, values: Sequence[Any] = ()) -> Any:
        """The first value of the first row; None when there is none."""
        row = self.run(statement, values).fetchone()
        return None if row is None else row[0]

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All that a statement answers."""
        rows: list[tuple[Any, ...]] = self.run(statement, values).fetchall()
        return rows

    def rows_of(self, statement: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        """The rows of these ids: a statement for all of them, or where that is faster for each."""
        raise NotImplementedError

    def changed(self, statement: str, values: Sequence[Any] = ()) -> int:
        """How many rows a statement changed."""
        raise NotImplementedError

    @property
    def known_now(self) -> float | None:
        """The time for a statement that can read the clock itself: None where it should."""
        return self.now

    def array(self, texts: Iterable[str]) -> Any:
        """Many texts as one value of a statement or column."""
        raise NotImplementedError

    def texts(self, column: Any) -> tuple[str, ...]:
        """The texts of a column that `array` made."""
        raise NotImplementedError

    def lock(self, kind: str, name: str) -> None:
        """Let in one transaction at a time, until it ends, where several can write at once."""

    def touch(self) -> None:
        """Before the renewal of a lease: mark that the store works now."""

    def check_leases(self) -> None:
        """Before leases are judged: renew them if the store was away until now."""
        self.touch()

    def may_judge(self) -> bool:
        """Whether every live worker had the chance to send a heartbeat."""
        return True

    def wake(self, pool: str | None) -> None:
        """When this is committed, let the workers that wait for this pool (None: for any) look."""
        raise NotImplementedError

    def interrupt(self, worker_id: str) -> None:
        """When this is committed, let the worker know that it lost a claim."""
        raise NotImplementedError
