"""What a verb works with in SQLite. See connection.py for how a transaction begins and ends."""

from __future__ import annotations

from sprat.core.jsontext import dumps, loads
from sprat.store.sql.transaction import SqlTransaction, Statements
from sprat.store.sqlite import clock, marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    import apsw

    from sprat.core.counters import Counters
    from sprat.store.sqlite.busy_handler import Patience


class SqliteTransaction(SqlTransaction):
    """One that only reads. `array` is JSON text."""

    __slots__ = ("db", "now", "run", "run_many")
    sql = Statements("sprat.store.sqlite")
    now: float

    def __init__(self, db: apsw.Connection, cursor: apsw.Cursor) -> None:
        self.db = db
        self.run: Callable[..., Any] = cursor.execute
        self.run_many: Callable[..., Any] = cursor.executemany

    def __getattr__(self, name: str) -> float:
        """Called for what is not set yet: the clock is read on first use."""
        if name != "now":
            raise AttributeError(name)
        self.now = clock.now(self.run)
        return self.now

    def rows_of(self, statement: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        values = [(item_id,) for item_id in ids]
        rows: list[tuple[Any, ...]] = self.run_many(statement, values).fetchall()
        return rows

    def array(self, texts: Iterable[str]) -> str:
        return dumps(list(texts))

    def texts(self, column: str) -> tuple[str, ...]:
        return tuple(loads(column))


class WriteTransaction(SqliteTransaction):
    """Also sums up what happens to items, to be written once at the end."""

    __slots__ = ("patience", "rings", "takes", "tally")

    def __init__(
        self, db: apsw.Connection, cursor: apsw.Cursor, tally: Counters, patience: Patience
    ) -> None:
        self.db = db
        self.run = cursor.execute
        self.run_many = cursor.executemany
        self.tally = tally
        self.patience = patience
        self.rings = False  # whether somebody who waits should look again
        self.takes = False  # whether a worker lost a claim
        self.ends = False  # whether this may be the last write here: hold nothing back

    def changed(self, statement: str, values: Sequence[Any] = ()) -> int:
        self.run(statement, values)
        return int(self.db.changes())

    def touch(self) -> None:
        marks.touch(self)

    def may_judge(self) -> bool:
        return self.patience.is_fair(self)

    def wake(self, pool: str | None) -> None:
        self.rings = True

    def interrupt(self, worker_id: str) -> None:
        self.takes = True
