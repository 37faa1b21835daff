"""Creates, checks and migrates the tables.

The version is in the file's header (`PRAGMA user_version`). A migration may only add (expand), so
older clients go on working; what they can no longer work with is dropped in a later release
(contract), which then raises `needs`: the oldest client version that may use the file.
"""

from __future__ import annotations

import time

from sprat.errors import StoreMismatch
from sprat.stores.sqlite import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    import apsw

APPLICATION_ID = 0x73707274  # "sprt", so that `file` and we can tell whose database this is
VERSION = 1
MIGRATIONS: Mapping[int, str] = {}  # version -> SQL that leads to it from the one before
OLDEST = 1  # the oldest version that the migrations still start from


def prepare(db: apsw.Connection, path: str) -> None:
    """Leave the database at a version that this client can use, or raise StoreMismatch."""
    version = _header(db, "user_version")
    if version == VERSION and _header(db, "application_id") == APPLICATION_ID:
        return
    if version and _header(db, "application_id") != APPLICATION_ID:
        raise StoreMismatch(f"{path} is a database of another program: name another file")
    if version > VERSION:
        _check_needs(db, path, version)
    elif version == 0:
        _create(db, path)
    elif version < OLDEST:
        raise StoreMismatch(
            f"{path} has schema version {version}, older than {OLDEST}, the oldest that this sprat "
            f"can migrate: upgrade it with an earlier release first"
        )
    else:
        _migrate(db)


def _header(db: apsw.Connection, name: str) -> int:
    return int(db.pragma(name))


def _check_needs(db: apsw.Connection, path: str, version: int) -> None:
    needs = db.execute("SELECT value FROM meta WHERE name = 'needs'").get
    if needs > VERSION:
        raise StoreMismatch(
            f"{path} has schema version {version} and needs a sprat that knows version {needs}; "
            f"this one knows {VERSION}: upgrade sprat"
        )


def _create(db: apsw.Connection, path: str) -> None:
    db.pragma("journal_mode", "wal")
    db.execute("BEGIN IMMEDIATE")
    try:
        if _header(db, "user_version") == 0:  # nobody else was faster
            if db.execute("SELECT count(*) FROM sqlite_schema").get:
                raise StoreMismatch(f"{path} is a database of another program: name another file")
            with open(__file__.replace("schema.py", "schema.sql"), encoding="utf-8") as file:
                db.execute(file.read())
            db.execute(
                "INSERT INTO meta VALUES ('needs', ?), ('clock_base', ?), ('clock_boot', ?)",
                (VERSION, time.time() - time.monotonic(), clock.boot()),
            )
            db.pragma("application_id", APPLICATION_ID)
            db.pragma("user_version", VERSION)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise


def _migrate(db: apsw.Connection) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        for version in range(_header(db, "user_version") + 1, VERSION + 1):
            db.execute(MIGRATIONS[version])
            db.pragma("user_version", version)
        db.execute("COMMIT")
    except BaseException:
        db.execute("ROLLBACK")
        raise
