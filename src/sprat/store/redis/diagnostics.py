"""What the server is, and whether it keeps what it acknowledges."""

from __future__ import annotations

import time
import warnings

from sprat.core.errors import SpratError, StoreMismatch, StoreWarning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient

OLDEST = (6, 2)
FORMAT = 2  # of keys and rows; another number when those of another sprat could not be read
UPGRADED = "sprat was upgraded: workers of the previous version finish what they hold and leave"
UNKNOWN = "unknown"


def facts(link: RedisClient) -> dict[str, str]:
    """The server's own words (INFO), empty where it does not allow us to ask."""
    try:
        text = str(link.ask("INFO"))
    except StoreMismatch:
        raise
    except SpratError as error:
        if "does not allow" in str(error):
            return {}
        raise
    lines = [line.partition(":") for line in text.splitlines() if ":" in line]
    return {name: value for name, _, value in lines}


def check(link: RedisClient) -> None:
    """Refuse a server that is too old, and a store that another sprat wrote; warn of a server
    that forgets. Asked once, when a store is opened."""
    known = facts(link)
    version = known.get("redis_version", "")
    if version and tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreMismatch(
            f"the server at {link.address} is Redis {version}: sprat needs 6.2 or later, or Valkey"
        )
    _check_format(link)
    for danger in dangers(known):
        warnings.warn(f"{link.address}: {danger}", StoreWarning, stacklevel=4)


def _check_format(link: RedisClient) -> None:
    found = int(link.run("format", FORMAT))
    if found == FORMAT - 1:
        link.run("migrate", found, FORMAT, UPGRADED)
        return
    if found == FORMAT:
        return
    where = f"the store {link.address.store!r} at {link.address}"
    known = f"has format {found} and this sprat knows {FORMAT}"
    if found > FORMAT:
        raise StoreMismatch(f"{where} {known}: upgrade sprat")
    raise StoreMismatch(
        f"{where} {known}: finish its work with an earlier release, or use another with ?store="
    )


def dangers(known: dict[str, str]) -> list[str]:
    """Why acknowledged work may be lost, in sentences."""
    found = []
    # A server that reads its append-only file at its start reports it as off until it is done.
    if known.get("aof_enabled") == "0" and known.get("loading") != "1":
        found.append(
            "the append-only file is off, so a restart of the server loses work: "
            "set `appendonly yes`"
        )
    policy = known.get("maxmemory_policy", "")
    if policy.startswith("allkeys"):
        found.append(
            f"maxmemory-policy is {policy}, so the server may drop work when memory is short: "
            f"set `maxmemory-policy noeviction`"
        )
    return found


def describe(link: RedisClient) -> dict[str, object]:
    known = facts(link)
    ahead = _store_time(link) - time.time()
    return {
        "kind": "redis",
        "where": str(link.address),
        "store": link.address.store,
        "server": server_of(known),
        "role": known.get("role", UNKNOWN),
        "aof": {"1": "on", "0": "off"}.get(known.get("aof_enabled", ""), UNKNOWN),
        "fsync": _setting(link, "appendfsync"),
        "eviction": known.get("maxmemory_policy", UNKNOWN),
        "dangers": dangers(known),
        "clock_ahead_seconds": round(ahead, 3),
    }


def server_of(known: dict[str, str]) -> str:
    """Its name and version; a Valkey also says which Redis it can stand in for."""
    if "valkey_version" in known:
        return f"valkey {known['valkey_version']}"
    return f"redis {known.get('redis_version', UNKNOWN)}"


def _setting(link: RedisClient, name: str) -> str:
    """One setting; a hosted server often keeps CONFIG to itself."""
    try:
        found = link.ask("CONFIG", "GET", name)
    except SpratError:
        return UNKNOWN
    return str(found[1]) if found else UNKNOWN


def _store_time(link: RedisClient) -> float:
    now, _ = link.run("workers_list", "?", "", "")
    return float(now) / 1e6
