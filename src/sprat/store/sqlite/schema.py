"""Creates, checks and migrates the tables.

The version is in the file's header (`PRAGMA user_version`). A migration may only add (expand), so
older clients that are connected go on working. `needs` is the oldest client version that may open
the file: older ones are refused.
"""

from __future__ import annotations

import apsw

from sprat.core.errors import StoreMismatch, StoreUnavailable
from sprat.core.runtime import runtime
from sprat.store.sqlite import clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

APPLICATION_ID = 0x73707274  # "sprt", so that `file` and we can tell whose database this is
VERSION = 4
FIRST = 1  # what schema.sql creates
NEEDS = 3  # an older client would run an item without looking at its task
MIGRATIONS: Mapping[int, str] = {  # version -> SQL that leads to it from the one before
    2: """
    CREATE TABLE document (                 -- API keys, triggers, who leads: see backend.py
        kind TEXT NOT NULL,
        name TEXT NOT NULL,
        body TEXT NOT NULL,                 -- JSON
        version INTEGER NOT NULL,
        expires_at REAL NOT NULL,           -- 9e99: never
        PRIMARY KEY (kind, name)
    ) WITHOUT ROWID;
    CREATE INDEX document_expiry ON document (expires_at) WHERE expires_at < 9e99;
    CREATE TABLE bucket (
        name TEXT PRIMARY KEY,
        tokens REAL NOT NULL,
        at REAL NOT NULL                    -- when they were counted
    ) WITHOUT ROWID;
    """,
    # Workers of the version before settle what they hold, and leave: they do not know tasks.
    3: """
    ALTER TABLE work_pool ADD COLUMN task TEXT;
    ALTER TABLE work_pool ADD COLUMN transients INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE work_pool ADD COLUMN hold TEXT;     -- of a pending item: why it is parked
    CREATE INDEX work_pool_parked ON work_pool (pool_name, task) WHERE hold IS NOT NULL;
    ALTER TABLE worker_registry ADD COLUMN renewals INTEGER NOT NULL DEFAULT 0;  -- see leases.py
    ALTER TABLE pool ADD COLUMN pause_reason TEXT;
    UPDATE worker_registry SET reason = 'sprat was upgraded: this worker does not know tasks',
        ended_at = iif(status = 'starting', last_heartbeat, NULL),
        status = iif(status = 'starting', 'terminated', 'terminating')
    WHERE status IN ('starting', 'active');
    -- The last incarnation that knows tasks. A client of the version before that is still connected
    -- does not set it: what it registers has to leave at once.
    ALTER TABLE worker_registry ADD COLUMN knows_tasks INTEGER;
    CREATE TRIGGER worker_registry_insert AFTER INSERT ON worker_registry
    WHEN NEW.status = 'active' AND NEW.knows_tasks IS NULL BEGIN
        UPDATE worker_registry SET status = 'terminated', ended_at = started_at,
            reason = 'sprat was upgraded: upgrade this worker'
        WHERE worker_id = NEW.worker_id;
    END;
    CREATE TRIGGER worker_registry_update AFTER UPDATE OF incarnation ON worker_registry
    WHEN NEW.knows_tasks IS NOT NEW.incarnation BEGIN
        UPDATE worker_registry SET status = 'terminated', ended_at = started_at,
            reason = 'sprat was upgraded: upgrade this worker'
        WHERE worker_id = NEW.worker_id;
    END;
    """,
    # Lanes first, priorities within them: a claim does not meet the priorities of other lanes.
    # Clients of the version before find the same items, by sorting those of a pool.
    4: """
    DROP INDEX work_pool_live;
    CREATE INDEX work_pool_live ON work_pool
        (claimed_by DESC, pool_name, tenant, grp, priority DESC, seq)
        WHERE run_at IS NULL AND status IN ('pending', 'claimed');
    """,
}
# Workers of an older version that still hold jobs: they open the file again after each fork.
OLD_WORKERS = (
    "SELECT count(*) FROM worker_registry WHERE status = 'terminating' AND knows_tasks IS NULL"
)
NEEDED = "SELECT value FROM meta WHERE name = 'needs'"
RAISE_NEEDS = "UPDATE meta SET value = ? WHERE name = 'needs'"
OLDEST = 1  # the oldest version that the migrations still start from
PAGE_BYTES = 1024  # of a new file: an exchange writes four or five pages, so smaller ones cost less
SWITCH_SECONDS = 30.0  # how long to try to put the file into WAL mode


def prepare(db: apsw.Connection, path: str) -> None:
    """Leave the database at a version that this client can use, or raise StoreMismatch and
    leave it as it is."""
    version, owner, tables = _header(db)
    if owner != APPLICATION_ID and (version or owner or tables):
        raise StoreMismatch(f"{path} is a database of another program: name another file")
    if version > VERSION:
        _check_needs(db, path, version)
    elif tables and version < OLDEST:
        raise StoreMismatch(
            f"{path} has schema version {version}, older than {OLDEST}, the oldest that this sprat "
            f"can migrate: upgrade it with an earlier release first"
        )
    if not tables:
        db.pragma("page_size", PAGE_BYTES)
    if db.pragma("journal_mode") != "wal":  # new, or a copy: VACUUM INTO does not keep the mode
        _switch_to_wal(db, path)
    if not tables:
        _in_one_step(db, _create)
    elif version < VERSION:
        _in_one_step(db, _migrate)
    elif db.execute(NEEDED).get < NEEDS and not db.execute(OLD_WORKERS).get:
        _in_one_step(db, _raise_needs)


def _header(db: apsw.Connection) -> tuple[int, int, int]:
    """Version, owner and number of tables at one moment: somebody may be creating them now."""
    db.execute("BEGIN")
    try:
        tables = db.execute("SELECT count(*) FROM sqlite_schema").get
        return _version(db), int(db.pragma("application_id")), int(tables)
    finally:
        db.execute("COMMIT")


def _version(db: apsw.Connection) -> int:
    return int(db.pragma("user_version"))


def _check_needs(db: apsw.Connection, path: str, version: int) -> None:
    needs = db.execute(NEEDED).get
    if needs > VERSION:
        raise StoreMismatch(
            f"{path} has schema version {version} and needs a sprat that knows version {needs}; "
            f"this one knows {VERSION}: upgrade sprat"
        )


def _switch_to_wal(db: apsw.Connection, path: str) -> None:
    """SQLite does not ask the busy handler when several openers do this at once: try again."""
    end = runtime.monotonic() + SWITCH_SECONDS
    mode = None
    while mode is None:
        try:
            mode = db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            if runtime.monotonic() > end:
                raise
            runtime.sleep(0.002)
    if mode != "wal":
        raise StoreUnavailable(f"{path} is on a file system without WAL: use a local disk")


def _in_one_step(db: apsw.Connection, change: Callable[[apsw.Connection], None]) -> None:
    db.execute("BEGIN IMMEDIATE")
    try:
        change(db)
        db.execute("COMMIT")
    except BaseException:
        if not db.get_autocommit():  # a full disk has rolled it back already
            db.execute("ROLLBACK")
        raise


def _create(db: apsw.Connection) -> None:
    if _version(db):
        return  # somebody else was faster
    with open(__file__.replace("schema.py", "schema.sql"), encoding="utf-8") as file:
        db.execute(file.read()).fetchall()  # all of it: a statement with an answer would stop it
    db.execute(
        "INSERT INTO meta VALUES ('needs', ?), ('clock_base', ?), ('clock_boot', ?)",
        (NEEDS, runtime.time() - runtime.monotonic(), clock.boot()),
    )
    db.pragma("application_id", APPLICATION_ID)
    db.pragma("user_version", FIRST)
    _migrate(db)


def _migrate(db: apsw.Connection) -> None:
    for version in range(_version(db) + 1, VERSION + 1):
        db.execute(MIGRATIONS[version]).fetchall()
        db.pragma("user_version", version)
    _raise_needs(db)


def _raise_needs(db: apsw.Connection) -> None:
    """Refuse older clients from now on, unless workers of theirs still have jobs to settle."""
    if not db.execute(OLD_WORKERS).get and db.execute(NEEDED).get < NEEDS:
        db.execute(RAISE_NEEDS, (NEEDS,))
