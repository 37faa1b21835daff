"""The verbs about pools."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.payload import settings_from
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import micros, signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient


def names(client: RedisClient) -> list[str]:
    return sorted(client.ask("SMEMBERS", client.address.tag + ":pools"))


def state(client: RedisClient, pool: str) -> model.PoolState:
    settings, version, pause, reason = client.run("pool_state", pool)
    is_timed = pause is not None and pause >= 0
    return model.PoolState(
        name=pool,
        settings=model.PoolSettings() if settings is None else settings_from(settings),
        version=version,
        paused=pause is None or pause >= 0,
        paused_seconds=pause / 1e6 if is_timed else None,
        pause_reason=reason,
    )


def configure(client: RedisClient, pool: str, settings: str, version: int | None) -> bool:
    expected = "" if version is None else version
    return bool(client.run("configure", pool, settings, expected, _limits(settings), new_request()))


def _limits(settings: str) -> str:
    """What a claim has to know of the settings: how many items each tenant may run."""
    read = settings_from(settings)
    if read.tenant_limit is None and not read.tenant_limits:
        return ""
    limits: dict[str, object] = {"each": dict(read.tenant_limits)}
    if read.tenant_limit is not None:
        limits["all"] = read.tenant_limit
    return jsontext.dumps(limits)


def pause(client: RedisClient, pool: str, seconds: float | None, reason: str | None) -> None:
    client.run("pause", pool, "" if seconds is None else micros(seconds), 0, signed(reason))


def hold_off(client: RedisClient, pool: str, seconds: float, reason: str | None) -> None:
    client.run("pause", pool, micros(seconds), 1, signed(reason))


def request_check(client: RedisClient, pool: str, max_workers: int) -> bool:
    return bool(client.run("request_check", pool, max_workers, new_request()))


def begin_check(client: RedisClient, pool: str) -> None:
    client.run("begin_check", pool)


def purge(client: RedisClient, pool: str, limit: int) -> int:
    return int(client.run("purge", pool, limit))


def delete_pool(client: RedisClient, pool: str, limit: int) -> bool | None:
    answer = int(client.run("delete_pool", pool, limit))
    return None if answer < 0 else bool(answer)
