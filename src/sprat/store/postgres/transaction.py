"""What a verb works with: statements of one transaction, its time, and what it sums up."""

from __future__ import annotations

from sprat.core.counters import Counters
from sprat.store.postgres import marks
from sprat.store.sql.transaction import SqlTransaction, Statements

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from psycopg import RawCursor

    from sprat.core.counters import Row
    from sprat.store.postgres.libpq import LibpqConnection

    Cursor = RawCursor[tuple[Any, ...]]

CLOCK = "SELECT sprat.clock()"
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sprat.' || $1 || ' ' || $2, 0))"
COUNT = "SELECT sprat.count($1, $2, $3, $4, $5, $6, $7, $8, $9)"
RING = "SELECT sprat.ring($1)"
RING_ALL = "SELECT pg_notify('sprat.bell', '')"
TELL = "SELECT pg_notify('sprat.cancel', $1)"
_ADD_STATS = """
INSERT INTO sprat.pool_stats AS s
SELECT pool, width, at, kind, bin, sprat.shard(), n, total, squares
FROM unnest($1::text[], $2::int[], $3::bigint[], $4::text[], $5::int[], $6::bigint[],
            $7::float8[], $8::float8[]) AS given (pool, width, at, kind, bin, n, total, squares)
{soon}
ORDER BY pool, width, at, kind, bin
ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET
    n = s.n + excluded.n, total = s.total + excluded.total, squares = s.squares + excluded.squares
"""
ADD_STATS = _ADD_STATS.format(soon="")
# As a transaction of its own it need not wait for the disk: statistics may get lost.
ADD_STATS_LATER = _ADD_STATS.format(
    soon="CROSS JOIN (SELECT set_config('synchronous_commit', 'off', true)) AS soon"
)


class PostgresTransaction(SqlTransaction):
    """Statements name the schema `sprat`; `names` has them for the schema that is really used."""

    __slots__ = (
        "_line",
        "_now",
        "again",
        "cursor",
        "ends",
        "names",
        "rings",
        "taken_from",
        "tally",
    )
    sql = Statements("sprat.store.postgres")

    def __init__(
        self,
        cursor: Cursor,
        names: Names,
        *,
        again: bool = False,
        line: LibpqConnection | None = None,
    ) -> None:
        self.cursor = cursor
        self._line = line  # the same connection, where one statement is all
        self.names = names
        self.again = again  # an earlier try may have been committed: its reply was lost
        self.tally = Counters()
        self.rings: set[str] = set()  # pools whose waiters should look again
        self.taken_from: set[str] = set()  # workers that lost a claim without having settled it
        self._now: float | None = None

    def run(self, statement: str, values: Sequence[Any] = ()) -> Cursor:
        return self.cursor.execute(self.names[statement], values)

    def rows(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All that a statement answers, the quickest way there is."""
        if self._line is not None:
            found = self._line.call(self.names[statement], values)
            if found is not None:
                return found
        return self.run(statement, values).fetchall()

    def rows_of(self, statement: str, ids: Iterable[str]) -> list[tuple[Any, ...]]:
        return self.rows(statement, (list(ids),))

    def run_many(self, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.cursor.executemany(self.names[statement], rows)

    def changed(self, statement: str, values: Sequence[Any] = ()) -> int:
        return self.run(statement, values).rowcount

    @property
    def known_now(self) -> float | None:
        return self._now

    @property
    def now(self) -> float:
        """The server's time, read once."""
        if self._now is None:
            self._now = float(self.one(CLOCK))
        return self._now

    @now.setter
    def now(self, moment: float) -> None:
        self._now = moment

    def array(self, texts: Iterable[str]) -> list[str]:
        return list(texts)

    def texts(self, column: list[str]) -> tuple[str, ...]:
        return tuple(column)

    def lock(self, kind: str, name: str) -> None:
        self.run(LOCK, (kind, name))

    def check_leases(self) -> None:
        marks.check(self)

    def wake(self, pool: str | None) -> None:
        if pool is None:
            self.run(RING_ALL)
        else:
            self.rings.add(pool)

    def interrupt(self, worker_id: str) -> None:
        self.taken_from.add(worker_id)

    def finish(self) -> None:
        """Write the counts, in one order everywhere so that no two transactions wait for each
        other, and wake who waits."""
        self.run_many(COUNT, [(*key, *self.tally.counts[key]) for key in sorted(self.tally.counts)])
        for pool in sorted(self.rings):
            self.run(RING, (pool,))
        for worker_id in sorted(self.taken_from):
            self.run(TELL, (worker_id,))

    def add_stats(self, rows: Sequence[Row], *, later: bool = False) -> None:
        if rows:
            statement = ADD_STATS_LATER if later else ADD_STATS
            self.run(statement, [list(column) for column in zip(*rows, strict=True)])


class Names(dict[str, str]):
    """Statements as written, and as sent: for the schema that the URL names."""

    def __init__(self, schema: str) -> None:
        super().__init__()
        self._schema = schema

    def __missing__(self, statement: str) -> str:
        sent = self[statement] = statement.replace("sprat.", f"{self._schema}.")
        return sent
