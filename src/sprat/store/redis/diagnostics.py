"""What the server is, and whether it keeps what it acknowledges."""

from __future__ import annotations

import warnings

from sprat.core.errors import SpratError, StoreMismatch, StoreWarning
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient

OLDEST = (6, 2)
FORMAT = 2  # of keys and rows; another number when those of another sprat could not be read
UPGRADED = "sprat was upgraded: workers of the previous version finish what they hold and leave"
UNKNOWN = "unknown"


def facts(client: RedisClient) -> dict[str, str]:
    """The server's own words (INFO), empty where it does not allow us to ask."""
    try:
        text = str(client.ask("INFO"))
    except StoreMismatch:
        raise
    except SpratError as error:
        if "does not allow" in str(error):
            return {}
        raise
    lines = [line.partition(":") for line in text.splitlines() if ":" in line]
    return {name: value for name, _, value in lines}


def check(client: RedisClient) -> None:
    """Refuse a server that is too old, and a store that another sprat wrote; warn of a server
    that forgets. Asked once, when a store is opened."""
    info = facts(client)
    version = info.get("redis_version", "")
    if version and tuple(int(part) for part in version.split(".")[:2]) < OLDEST:
        raise StoreMismatch(
            f"the server at {client.address} is Redis {version}: "
            "sprat needs 6.2 or later, or Valkey"
        )
    _check_format(client)
    for danger in dangers(info):
        warnings.warn(f"{client.address}: {danger}", StoreWarning, stacklevel=4)


def _check_format(client: RedisClient) -> None:
    stored = int(client.run("format", FORMAT))
    if stored == FORMAT - 1:
        client.run("migrate", stored, FORMAT, UPGRADED)
        return
    if stored == FORMAT:
        return
    where = f"the store {client.address.store!r} at {client.address}"
    formats = f"has format {stored} and this sprat knows {FORMAT}"
    if stored > FORMAT:
        raise StoreMismatch(f"{where} {formats}: upgrade sprat")
    raise StoreMismatch(
        f"{where} {formats}: finish its work with an earlier release, or use another with ?store="
    )


def dangers(info: dict[str, str]) -> list[str]:
    """Why acknowledged work may be lost, in sentences."""
    sentences = []
    # A server that reads its append-only file at its start reports it as off until it is done.
    if info.get("aof_enabled") == "0" and info.get("loading") != "1":
        sentences.append(
            "the append-only file is off, so a restart of the server loses work: "
            "set `appendonly yes`"
        )
    policy = info.get("maxmemory_policy", "")
    if policy.startswith("allkeys"):
        sentences.append(
            f"maxmemory-policy is {policy}, so the server may drop work when memory is short: "
            f"set `maxmemory-policy noeviction`"
        )
    return sentences


def describe(client: RedisClient) -> dict[str, object]:
    info = facts(client)
    ahead = _store_time(client) - runtime.time()
    return {
        "kind": "redis",
        "where": str(client.address),
        "store": client.address.store,
        "server": server_of(info),
        "role": info.get("role", UNKNOWN),
        "aof": {"1": "on", "0": "off"}.get(info.get("aof_enabled", ""), UNKNOWN),
        "fsync": _setting(client, "appendfsync"),
        "eviction": info.get("maxmemory_policy", UNKNOWN),
        "dangers": dangers(info),
        "clock_ahead_seconds": round(ahead, 3),
    }


def server_of(info: dict[str, str]) -> str:
    """Its name and version; a Valkey also says which Redis it can stand in for."""
    if "valkey_version" in info:
        return f"valkey {info['valkey_version']}"
    return f"redis {info.get('redis_version', UNKNOWN)}"


def _setting(client: RedisClient, name: str) -> str:
    """One setting; a hosted server often keeps CONFIG to itself."""
    try:
        pair = client.ask("CONFIG", "GET", name)
    except SpratError:
        return UNKNOWN
    return str(pair[1]) if pair else UNKNOWN


def _store_time(client: RedisClient) -> float:
    now, _ = client.run("workers_list", "?", "", "")
    return float(now) / 1e6
