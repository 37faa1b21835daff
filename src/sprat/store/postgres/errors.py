"""The driver's errors in our words. None of them shows a password."""

from __future__ import annotations

import psycopg
from psycopg import errors

from sprat.core.errors import (
    InvalidInput,
    KeyConflict,
    SpratError,
    StoreMismatch,
    StoreUnavailable,
    UnknownItem,
    UnknownWorker,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.postgres.address import PostgresAddress

UNKNOWN_ITEM = "SP001"  # raised by functions.sql
UNKNOWN_WORKER = "SP002"
HALF_PUSHED = "SP003"

# Worth another try at once: the transaction lost against another and left no trace.
LOST_A_RACE = (errors.DeadlockDetected, errors.SerializationFailure, errors.LockNotAvailable)
# Worth another connection: this one ended, or leads to a server that may only be read.
LOST_THE_SERVER = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow)


def is_lost_server(error: BaseException) -> bool:
    """Whether the same call over a new connection may succeed."""
    if isinstance(error, (*LOST_THE_SERVER, errors.ReadOnlySqlTransaction)):
        return True
    return isinstance(error, psycopg.OperationalError) and error.sqlstate is None


def is_passing(error: BaseException) -> bool:
    """Whether the store can soon be opened: the server starts, or a migration met busy clients."""
    words = (f"the database system is {word}" for word in ("start", "shut", "in reco"))
    return isinstance(error, LOST_A_RACE) or any(word in str(error) for word in words)


def is_hopeless(error: BaseException) -> bool:
    """Whether waiting does not help: the server is there and says no."""
    text = str(error)
    return any(words in text for words in ("password", "does not exist", "pg_hba", "not permitted"))


def translated(error: BaseException, address: PostgresAddress) -> BaseException:
    if isinstance(error, SpratError) or not isinstance(error, psycopg.Error):
        return error
    where = address.shown
    state = error.sqlstate
    if state in _OURS:
        return _ours(error)
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreUnavailable(
            f"{where}: {_first_line(error)}: let its owner grant it, see docs/operate/postgresql.md"
        )
    if isinstance(error, errors.DiskFull):
        return StoreUnavailable(f"the disk of {where} is full, nothing changed: free some space")
    if isinstance(error, (errors.UndefinedTable, errors.UndefinedFunction, errors.UndefinedObject)):
        return StoreMismatch(
            f"the schema {address.schema!r} of {where} is not, or no longer, a sprat store "
            f"({_first_line(error)}): name another with ?schema=, or restore it"
        )
    if isinstance(error, psycopg.DataError):
        return InvalidInput(f"PostgreSQL cannot hold this text: {_first_line(error)}")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(_unavailable(error, address))
    return error


_OURS = (UNKNOWN_ITEM, UNKNOWN_WORKER, HALF_PUSHED)


def _ours(error: psycopg.Error) -> SpratError:
    what = error.diag.message_primary
    if error.sqlstate == UNKNOWN_ITEM:
        return UnknownItem(f"the store has no item {what!r}")
    if error.sqlstate == UNKNOWN_WORKER:
        return UnknownWorker(f"worker {what!r} is not registered: register it first")
    return KeyConflict("some, but not all, of these ids are in the store already")


def _unavailable(error: psycopg.Error, address: PostgresAddress) -> str:
    text = str(error)
    if "password" in text or "no pg_hba.conf entry" in text:
        return f"{address.host} refused the login to {address.shown}: check user and password"
    if "does not exist" in text:
        return f"{address.shown}: {_first_line(error)}: create it first"
    if isinstance(error, errors.QueryCanceled | errors.LockNotAvailable):
        return f"{address.shown} took too long ({_first_line(error)}): nothing changed, try again"
    if isinstance(error, errors.TooManyConnections):
        return f"{address.shown} has no connection left: raise max_connections, or use PgBouncer"
    return f"{address.shown} cannot be reached ({_first_line(error)}): is the server running?"


def _first_line(error: psycopg.Error) -> str:
    """What the server said, or the driver; the address in front of it is ours to say."""
    lines = [line for line in str(error).splitlines() if line[:1] not in ("", "\t")]  # no advice
    said = error.diag.message_primary or lines[-1:] or [""]
    line = said if isinstance(said, str) else said[0]
    return line.rpartition("FATAL:")[2].rpartition("failed: ")[2].strip().rstrip("?.")
