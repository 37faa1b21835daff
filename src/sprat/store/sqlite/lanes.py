"""Which items are next: priority, then tenants in turn, then age, for what a worker can do.

A *lane* is the ready items of one pool, tenant and group; the index work_pool_live holds lanes side
by side, each by priority and then in order of arrival. A pool that never saw a tenant or a group
has one lane, and the index order is the claim order. Otherwise the tenants are found by hopping
through the index from one to the next, the heads of the lanes that the worker can do are looked up
and compared: the cost grows with the number of tenants that have work and of the worker's
capabilities, never with the number of items, priorities or groups.
"""

from __future__ import annotations

from sprat.core import counters, retry_rules, tenant_limits
from sprat.store.sqlite.rows import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from sprat.core.model import PoolSettings
    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

    Row = tuple[Any, ...]

_ROW = """seq, ready_at, suspect, attempts, max_retries, tenant, grp, id, data, priority, key,
epoch, checkpoint, progress, progress_note, error, created_at, given_back, task, transients,
hold"""
SEQ, READY_AT, SUSPECT, ATTEMPTS, MAX_RETRIES, TENANT, GROUP = range(7)
PRIORITY = 9
HOLD = -1
_READY = f"FROM work_pool WHERE pool_name = ?1 AND {READY}"

PROMOTE = """
UPDATE work_pool SET ready_at = run_at, run_at = NULL
WHERE pool_name = ?1 AND status = 'pending' AND run_at <= ?2 RETURNING grp
"""
ANY = f"SELECT 1 {_READY} LIMIT 1"
ONE_LANE = "tenant = '' AND grp = '' ORDER BY priority DESC, seq"  # of a pool without others
IN_ORDER = f"SELECT {_ROW} {_READY} AND {ONE_LANE} LIMIT ?2"
FIRST_TENANT = f"SELECT tenant {_READY} ORDER BY tenant LIMIT 1"
NEXT_TENANT = f"SELECT tenant {_READY} AND tenant > ?2 ORDER BY tenant LIMIT 1"
_LANE = f"SELECT {_ROW} {_READY} AND tenant = ?2 AND grp = ?3"
HEAD = f"{_LANE} ORDER BY priority DESC, seq LIMIT 1"
FOLLOWER = f"{_LANE} AND priority = ?4 AND seq > ?5 ORDER BY seq LIMIT 1"
HEAD_BELOW = f"{_LANE} AND priority < ?4 ORDER BY priority DESC, seq LIMIT 1"
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
        tx.tally.count(pool, group, counters.DELAYED, -1)


def has_any(tx: SqliteTransaction, pool: str) -> bool:
    """Whether there is a ready item, for any worker."""
    return tx.run(ANY, (pool,)).get is not None


def in_order(tx: SqliteTransaction, pool: str, n: int) -> list[Row]:
    """Up to n items of a pool without lanes; all but the first may run ahead."""
    return _up_to_alone(tx.run(IN_ORDER, (pool, n)).fetchall())


def _up_to_alone(rows: list[Row]) -> list[Row]:
    """An item that has to run alone can only be the first of a batch."""
    for place in range(1, len(rows)):
        if not _may_run_ahead(rows[place]):
            return rows[:place]
    return rows


def _may_run_ahead(row: Row) -> bool:
    return retry_rules.may_run_ahead(
        suspect=bool(row[SUSPECT]), attempts=row[ATTEMPTS], max_retries=row[MAX_RETRIES]
    )


class Turns:
    """Whose turn it is, and who is at their limit."""

    def __init__(self, tx: SqliteTransaction, pool: str, last: int, settings: PoolSettings) -> None:
        self._tx = tx
        self._pool = pool
        self._last = last
        self._turns: dict[str, int] = {}
        self._settings = settings
        is_limited = tenant_limits.are_set(settings)
        self._running = dict(tx.run(RUNNING, (pool,)).fetchall()) if is_limited else None

    def is_open(self, tenant: str) -> bool:
        """Whether the tenant may have one more running item."""
        if self._running is None or not tenant:
            return True
        limit = tenant_limits.limit_of(self._settings, tenant)
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


def in_turn(tx: SqliteTransaction, pool: str, n: int, groups: set[str], turns: Turns) -> list[Row]:
    """Up to n items of these groups, tenants in turn; all but the first may run ahead."""
    chosen: list[Row] = []
    heads = {
        (tenant, group): head
        for tenant in _tenants(tx, pool)
        for group in groups
        if (head := tx.run(HEAD, (pool, tenant, group)).fetchone()) is not None
    }
    while len(chosen) < n and (lane := _best(heads, turns)) is not None:
        row = heads.pop(lane)
        if chosen and not _may_run_ahead(row):
            break
        chosen.append(row)
        turns.give(lane[0])
        if len(chosen) < n and (follower := _follower(tx, pool, row)) is not None:
            heads[lane] = follower
    return chosen


def _best(heads: dict[tuple[str, str], Row], turns: Turns) -> tuple[str, str] | None:
    open_lanes = [lane for lane in heads if turns.is_open(lane[0])]
    if not open_lanes:
        return None
    highest = max(heads[lane][PRIORITY] for lane in open_lanes)
    first = [lane for lane in open_lanes if heads[lane][PRIORITY] == highest]
    return min(first, key=lambda lane: (turns.last(lane[0]), heads[lane][SEQ]))


def _tenants(tx: SqliteTransaction, pool: str) -> Iterator[str]:
    tenant: str | None = tx.run(FIRST_TENANT, (pool,)).get
    while tenant is not None:
        yield tenant
        tenant = tx.run(NEXT_TENANT, (pool, tenant)).get


def _follower(tx: SqliteTransaction, pool: str, row: Row) -> Row | None:
    """The item after this one in its lane."""
    lane = (pool, row[TENANT], row[GROUP], row[PRIORITY])
    found: Row | None = tx.run(FOLLOWER, (*lane, row[SEQ])).fetchone()
    return found or tx.run(HEAD_BELOW, lane).fetchone()
