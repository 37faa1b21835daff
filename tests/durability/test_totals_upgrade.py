"""Totals of a store that clients of an earlier version use too: they roll up without them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from worlds import WORLDS

# What a purge of the version before does to the statistics of a pool until a moment.
ROLL_UP = {
    "sqlite": [
        """INSERT INTO pool_stats
        SELECT pool_name, 900, at / 900 * 900, kind, bin, sum(n), sum(total), sum(squares)
        FROM pool_stats WHERE pool_name = ?1 AND width = 10 AND at < ?2 GROUP BY 3, kind, bin
        ON CONFLICT DO UPDATE SET n = n + excluded.n, total = total + excluded.total,
            squares = squares + excluded.squares""",
        "DELETE FROM pool_stats WHERE pool_name = ?1 AND width = 10 AND at < ?2",
    ],
    "postgres": [
        """WITH old AS (
            DELETE FROM sprat.pool_stats WHERE pool_name = $1 AND width = 10 AND at < $2
            RETURNING *)
        INSERT INTO sprat.pool_stats AS s
        SELECT pool_name, 900, at / 900 * 900, kind, bin, 0, sum(n), sum(total), sum(squares)
        FROM old GROUP BY 1, 3, kind, bin
        ON CONFLICT (pool_name, width, at, kind, bin, shard) DO UPDATE SET n = s.n + excluded.n,
            total = s.total + excluded.total, squares = s.squares + excluded.squares""",
    ],
}


ARRIVALS = re.compile(r"^10:(\d+):a$")


def roll_up_sql(kind: str, store: Any, pool: str) -> None:
    def verb(tx: Any) -> None:
        before = int(tx.now - 7200) // 900 * 900
        for statement in ROLL_UP[kind]:
            tx.run(statement, (pool, before))

    store.backend._write(verb)


def roll_up_redis(world: Any, store: Any, pool: str) -> None:
    """Arrivals are all that this test counts."""
    key = f"{{{world.tag}}}:pool:{pool}:stats"
    before = store.pool(pool).observe().now - 7200 - 900
    client = store.backend._client
    for field in client.ask("HKEYS", key):
        found = ARRIVALS.match(field)
        if found and int(found[1]) < before:
            wide = int(found[1]) // 900 * 900
            client.ask("HINCRBY", key, f"900:{wide}:a", client.ask("HGET", key, field))
            client.ask("HDEL", key, field)


@pytest.mark.parametrize("kind", [*ROLL_UP, "redis"])
def test_totals_stay_right_beside_clients_that_know_none(kind: str, tmp_path: Path) -> None:
    world = WORLDS[kind](tmp_path)
    store = world.open()
    pool = store.pool("papers")
    for n in range(1, 9):
        pool.push("work")
        world.advance(3 * 3600)
        if n % 3 and kind == "redis":
            roll_up_redis(world, store, pool.name)
        elif n % 3:
            roll_up_sql(kind, store, pool.name)
        assert pool.totals().arrivals == n
        if n % 2:
            pool.purge()
        assert pool.totals().arrivals == n
        if n % 4 == 0:
            world.advance(36 * 86400)
            pool.purge()
            assert pool.history(100 * 86400) == []
            assert pool.totals().arrivals == n
    world.close()
