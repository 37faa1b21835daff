"""What goes wrong between us and the server, in our words."""

from __future__ import annotations

from sprat.core.errors import (
    KeyConflict,
    SpratError,
    StoreMismatch,
    StoreUnavailable,
    UnknownItem,
    UnknownWorker,
)
from sprat.core.payload import too_much_metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.address import RedisAddress

# Replies of a server that will answer soon, or of one that is not the right one any more.
# ASK: a cluster is moving the store's slot. No script has begun, because the key that it declares
# never exists; and its other keys are on either node, so sprat waits until the slot has arrived.
PASSING = (
    *("ASK", "BUSY", "CLUSTERDOWN", "LOADING", "MASTERDOWN"),
    *("READONLY", "TRYAGAIN", "UNBLOCKED"),
)

SENTENCES = {
    "NOAUTH": "wants a password: set SPRAT_REDIS_PASSWORD, or write redis://:password@host",
    "WRONGPASS": "refuses the user name or the password: check the URL and SPRAT_REDIS_PASSWORD",
    "NOPERM": "does not allow this user to do that: docs/operate/redis.md lists what is needed",
    "OOM": "has no memory left and nothing changed: raise maxmemory, or purge finished items",
    "MISCONF": "cannot write to its disk and nothing changed: look into its log",
    "NOREPLICAS": "has too few replicas to accept a write, nothing changed: look at them",
    "LOADING": "is still reading its data from disk: try again soon",
    "READONLY": "is a replica and cannot be written: use the URL of the master, or of Sentinel",
    "BUSY": "is busy with a script of somebody else: try again, or SCRIPT KILL ends it",
    "MASTERDOWN": "has lost its master: try again soon",
    "CLUSTERDOWN": "is a cluster that is down: look at its nodes",
    "ASK": "is moving the store to another node of the cluster: try again soon",
    "CROSSSLOT": "was asked for keys of several slots: this is a mistake in sprat, report it",
}


def code_of(error: Exception) -> str:
    """The word that an error reply begins with. An error inside a script may have a prefix."""
    words = str(error).split(None, 1)
    code = words[0].strip("-:") if words else ""
    if code in ("ERR", "@user_script"):
        for name in SENTENCES:
            if f"{name} " in str(error):
                return name
        if "Authentication" in str(error) or "AUTH" in str(error):
            return "WRONGPASS"
    return code


def translated(error: Exception, address: RedisAddress, pool: str = "") -> SpratError:
    """An error reply in our words."""
    code, rest = code_of(error), str(error).partition(" ")[2]
    if code == "NOITEM":
        return UnknownItem(f"the store has no item {rest!r}")
    if code == "NOWORKER":
        return UnknownWorker(f"worker {rest!r} is not registered: register it first")
    if code == "METADATA":
        return too_much_metadata()
    if code == "CONFLICT":
        return KeyConflict(
            f"pool {pool!r} has an item with the key {rest!r} and another payload or task: "
            f"use another key, or push the same payload for the same task"
        )
    if code in SENTENCES:
        return StoreUnavailable(f"the server at {address} {SENTENCES[code]}")
    if code in PASSING or code == "MOVED":
        return StoreUnavailable(f"the server at {address} cannot answer now ({error}): try again")
    if "unknown command" in str(error):
        return StoreMismatch(f"the server at {address} is not Redis 6.2 or later: {error}")
    return StoreMismatch(f"the server at {address} answered with an error: {error}")


def unreachable(error: BaseException, address: RedisAddress) -> StoreUnavailable:
    why = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return StoreUnavailable(
        f"the server at {address} cannot be reached ({why}): is it running, is the URL right?"
    )
