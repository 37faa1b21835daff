"""Facts about the server for `sprat doctor`."""

from __future__ import annotations

import psycopg

from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.connections import Sessions
    from sprat.store.postgres.transaction import PostgresTransaction

FACTS = """
SELECT current_setting('server_version'),
       (SELECT value::int FROM sprat.meta WHERE name = 'version'),
       current_setting('fsync'), current_setting('synchronous_commit'),
       current_setting('full_page_writes'), current_setting('max_connections')::int,
       current_user, sprat.clock(),
       has_table_privilege('sprat.work_pool', 'SELECT, INSERT, UPDATE, DELETE')
"""


def describe(tx: PostgresTransaction, connections: Sessions) -> dict[str, object]:
    before = runtime.time()
    row = tx.run(FACTS).fetchall()[0]
    version, schema, fsync, commit, pages, most, user, now, may_write = row
    return {
        "kind": "postgresql",
        "url": connections.address.shown,
        "schema_name": connections.address.schema,
        "driver": f"psycopg {psycopg.__version__} ({psycopg.pq.__impl__})",
        "postgresql": version,
        "schema": schema,
        "synced": "every write" if fsync == "on" else "nothing: fsync is off",
        "fsync": fsync,
        "synchronous_commit": commit,
        "full_page_writes": pages,
        "max_connections": most,
        "user": user,
        "may_write": may_write,
        "pooled": connections.is_pooled,
        "clock_ahead_seconds": round(now - (before + runtime.time()) / 2, 3),
    }
