"""Which items are next: priority, then tenants in turn, then age, for what a worker can do.

A *lane* is the ready items of one pool, priority, tenant and group; the index work_pool_live
holds lanes side by side, each in order of arrival. A pool that never saw a tenant or a group has
one lane a priority, and the index order is the claim order. Otherwise the lanes of the highest
priority are found by hopping through the index from one to the next, and their heads compared:
the cost grows with the number of lanes that have work, never with the number of items.
"""

from __future__ import annotations

from sprat import limits, retry, tally
from sprat.stores.sqlite.rows import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sprat.model import PoolSettings
    from sprat.stores.sqlite.connection import Transaction, WriteTransaction

    Row = tuple[Any, ...]

_ROW = """seq, ready_at, suspect, attempts, max_retries, tenant, grp, id, data, priority, key,
epoch, checkpoint, progress, progress_note, error, created_at, given_back, task, transients,
hold"""
SEQ, READY_AT, SUSPECT, ATTEMPTS, MAX_RETRIES, TENANT, GROUP = range(7)
HOLD = -1
_READY = f"FROM work_pool WHERE pool_name = ?1 AND {READY}"

PROMOTE = """
UPDATE work_pool SET ready_at = run_at, run_at = NULL
WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?2 RETURNING grp
"""
IN_ORDER = f"SELECT {_ROW} {_READY} ORDER BY priority DESC, tenant, grp, seq LIMIT ?2"
PRIORITY = f"SELECT priority {_READY} ORDER BY priority DESC LIMIT 1"
PRIORITY_BELOW = f"SELECT priority {_READY} AND priority < ?2 ORDER BY priority DESC LIMIT 1"
FIRST_LANE = f"SELECT tenant, grp {_READY} AND priority = ?2 ORDER BY tenant, grp LIMIT 1"
NEXT_LANE = f"""
SELECT tenant, grp {_READY} AND priority = ?2 AND (tenant, grp) > (?3, ?4)
ORDER BY tenant, grp LIMIT 1
"""
HEAD = f"""
SELECT {_ROW} {_READY} AND priority = ?2 AND tenant = ?3 AND grp = ?4 AND seq > ?5
ORDER BY seq LIMIT 1
"""
RUNNING = """
SELECT tenant, count(*) FROM work_pool
WHERE pool_name = ? AND status = 'claimed' AND tenant <> '' GROUP BY tenant
"""
TURN = "SELECT turn FROM tenant_turn WHERE pool_name = ? AND tenant = ?"
SET_TURN = "INSERT OR REPLACE INTO tenant_turn VALUES (?, ?, ?)"
SET_LAST_TURN = "UPDATE pool SET turn = ?2 WHERE name = ?1"


def promote(tx: WriteTransaction, pool: str) -> None:
    """Make delayed items ready whose time has come."""
    for (group,) in tx.run(PROMOTE, (pool, tx.now)).fetchall():
        tx.tally.count(pool, group, tally.DELAYED, -1)


def in_order(tx: Transaction, pool: str, n: int) -> list[Row]:
    """Up to n items of a pool without lanes; all but the first may run ahead."""
    return _up_to_alone(tx.run(IN_ORDER, (pool, n)).fetchall())


def _up_to_alone(rows: list[Row]) -> list[Row]:
    """An item that has to run alone can only be the first of a batch."""
    for place in range(1, len(rows)):
        if not _may_run_ahead(rows[place]):
            return rows[:place]
    return rows


def _may_run_ahead(row: Row) -> bool:
    return retry.may_run_ahead(
        suspect=bool(row[SUSPECT]), attempts=row[ATTEMPTS], max_retries=row[MAX_RETRIES]
    )


class Turns:
    """Whose turn it is, and who is at their limit."""

    def __init__(self, tx: Transaction, pool: str, last: int, settings: PoolSettings) -> None:
        self._tx = tx
        self._pool = pool
        self._last = last
        self._turns: dict[str, int] = {}
        self._settings = settings
        is_limited = limits.are_set(settings)
        self._running = dict(tx.run(RUNNING, (pool,)).fetchall()) if is_limited else None

    def is_open(self, tenant: str) -> bool:
        """Whether the tenant may have one more running item."""
        if self._running is None or not tenant:
            return True
        limit = limits.limit_of(self._settings, tenant)
        return limit is None or self._running.get(tenant, 0) < limit

    def last(self, tenant: str) -> int:
        """When the tenant last had its turn; 0 for never."""
        if tenant not in self._turns:
            self._turns[tenant] = self._tx.run(TURN, (self._pool, tenant)).get or 0
        return self._turns[tenant]

    def give(self, tenant: str) -> None:
        self._last += 1
        self._turns[tenant] = self._last
        if self._running is not None and tenant:
            self._running[tenant] = self._running.get(tenant, 0) + 1

    def keep(self, tenants: list[str]) -> None:
        """Write down the turns of the items that were really taken."""
        if tenants:
            for tenant in dict.fromkeys(tenants):
                self._tx.run(SET_TURN, (self._pool, tenant, self._turns[tenant]))
            self._tx.run(SET_LAST_TURN, (self._pool, self._last))


def in_turn(tx: Transaction, pool: str, n: int, groups: set[str], turns: Turns) -> list[Row]:
    """Up to n items of these groups, tenants in turn; all but the first may run ahead."""
    chosen: list[Row] = []
    priority = tx.run(PRIORITY, (pool,)).get
    while priority is not None:
        heads = {
            lane: head
            for lane in _lanes(tx, pool, priority)
            if lane[1] in groups and (head := _head(tx, pool, priority, lane, 0)) is not None
        }
        while (lane := _best(heads, turns)) is not None:
            row = heads.pop(lane)
            if chosen and not _may_run_ahead(row):
                return chosen
            chosen.append(row)
            turns.give(lane[0])
            if len(chosen) == n:
                return chosen
            follower = _head(tx, pool, priority, lane, row[0])
            if follower is not None:
                heads[lane] = follower
        priority = tx.run(PRIORITY_BELOW, (pool, priority)).get
    return chosen


def _best(heads: dict[tuple[str, str], Row], turns: Turns) -> tuple[str, str] | None:
    open_lanes = [lane for lane in heads if turns.is_open(lane[0])]
    if not open_lanes:
        return None
    return min(open_lanes, key=lambda lane: (turns.last(lane[0]), heads[lane][0]))


def _lanes(tx: Transaction, pool: str, priority: int) -> Iterator[tuple[str, str]]:
    lane = tx.run(FIRST_LANE, (pool, priority)).fetchone()
    while lane is not None:
        yield lane
        lane = tx.run(NEXT_LANE, (pool, priority, *lane)).fetchone()


def _head(
    tx: Transaction, pool: str, priority: int, lane: tuple[str, str], after: int
) -> Row | None:
    head: Row | None = tx.run(HEAD, (pool, priority, *lane, after)).fetchone()
    return head
