"""Creates, checks and migrates the tables and functions.

The version is a row of `meta`. A migration may only add (expand), so older clients go on working;
what they can no longer work with is dropped in a later release (contract), which then raises
`needs`: the oldest client version that may use the store. Functions are replaced as a whole by the
newest client that comes, and keep their signatures; one that needs another gets another name.
"""

from __future__ import annotations

import psycopg
from psycopg import errors

from sprat.core.errors import InvalidInput, StoreMismatch, StoreUnavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from sprat.store.postgres.address import PostgresAddress
    from sprat.store.postgres.transaction import Names

    Db = psycopg.Connection[tuple[Any, ...]]

VERSION = 3
FIRST = 1  # what schema.sql creates
NEEDS = 2
# The files that lead to a version.
MIGRATIONS: Mapping[int, str] = {2: "version_2.sql", 3: "version_3.sql"}
OLDEST_SERVER = 130000

STATE = """
SELECT current_setting('synchronous_commit'), pg_backend_pid(),
       (SELECT value::int FROM sprat.meta WHERE name = 'version'),
       (SELECT value::int FROM sprat.meta WHERE name = 'needs')
"""
LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('sprat.schema', 0))"
STRANGERS = """
SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE n.nspname || '.' = 'sprat.' AND c.relname <> 'meta'
"""
HAS_SCHEMA = "SELECT count(*) FROM pg_namespace WHERE nspname || '.' = 'sprat.'"
HAS_META = "SELECT to_regclass('sprat.meta') IS NOT NULL"
SET_META = """
INSERT INTO sprat.meta VALUES ('version', $1), ('needs', $2)
ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""


def prepare(db: Db, address: PostgresAddress, names: Names) -> bool:
    """Leave the store at a version that this client can use, or raise and leave it as it is.
    Whether the server is behind a pooler, which lends us another session every time."""
    if db.info.server_version < OLDEST_SERVER:
        raise StoreMismatch(f"{address.shown} is older than PostgreSQL 13: upgrade the server")
    row = _state(db, names)
    if row is None or row[2] < VERSION:
        _create_or_migrate(db, address, names)
        row = _state(db, names)
        assert row is not None
    durability, pid, version, needs = row
    if durability == "off":
        raise StoreUnavailable(
            f"{address.shown} has synchronous_commit off: what it acknowledges can be lost; "
            f"switch it on, for example with ALTER ROLE {db.info.user} SET synchronous_commit = on"
        )
    if version > VERSION and needs > VERSION:
        raise StoreMismatch(
            f"{address.shown} has schema version {version} and needs a sprat that knows version "
            f"{needs}; this one knows {VERSION}: upgrade sprat"
        )
    if address.pooled is not None:
        return address.pooled
    return bool(pid != db.info.backend_pid)


def _state(db: Db, names: Names) -> tuple[Any, ...] | None:
    try:
        return db.execute(names[STATE]).fetchone()
    except (errors.UndefinedTable, errors.InvalidSchemaName):
        return None


def _create_or_migrate(db: Db, address: PostgresAddress, names: Names) -> None:
    """Whoever comes first does it, the others wait and find it done."""
    with db.transaction():
        db.execute(names[LOCK])
        if not _one(db, names[HAS_META]):
            _create(db, address, names)
            return
        row = _state(db, names)
        version = row[2] if row else VERSION
        if version < VERSION:
            _migrate(db, names, version)


def _create(db: Db, address: PostgresAddress, names: Names) -> None:
    if _one(db, names[STRANGERS]):
        raise StoreMismatch(
            f"the schema {address.schema!r} of {address.shown} belongs to another program: "
            f"name another with ?schema="
        )
    if not _one(db, names[HAS_SCHEMA]):
        db.execute(f"CREATE SCHEMA {address.schema}")
    db.execute(names[_text("schema.sql")])
    _migrate(db, names, FIRST)


def _migrate(db: Db, names: Names, version: int) -> None:
    for step in range(version + 1, VERSION + 1):
        db.execute(names[_text(MIGRATIONS[step])])
    for file in ("lanes.sql", "marks.sql", "functions.sql", "pushing.sql"):
        db.execute(names[_text(file)])
    psycopg.RawCursor(db).execute(names[SET_META], (str(VERSION), str(NEEDS)))


def _text(file: str) -> str:
    with open(__file__.replace("schema.py", file), encoding="utf-8") as text:
        return text.read()


def _one(db: Db, statement: str) -> Any:
    row = db.execute(statement).fetchone()
    return row and row[0]


def of_the_caller(connection: object) -> Db:
    """A connection that somebody wants a verb to join."""
    if not isinstance(connection, psycopg.Connection):
        raise InvalidInput(
            f"connection= takes a psycopg.Connection, not {type(connection).__name__}"
        )
    if not connection.autocommit:
        connection.execute("SELECT 1")  # begins its transaction, or what follows would be one
    return connection
