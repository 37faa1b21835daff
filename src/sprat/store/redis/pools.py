"""Settings, pauses and the end of pools."""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.payload import settings_from
from sprat.store.backend import Backend
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import micros, signed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.redis.client import RedisClient


class RedisPools(Backend):
    """The verbs about pools."""

    _client: RedisClient

    def pools(self) -> list[str]:
        return sorted(self._client.ask("SMEMBERS", self._client.address.tag + ":pools"))

    def pool_state(self, pool: str) -> model.PoolState:
        settings, version, pause, reason = self._client.run("pool_state", pool)
        is_timed = pause is not None and pause >= 0
        return model.PoolState(
            name=pool,
            settings=model.PoolSettings() if settings is None else settings_from(settings),
            version=version,
            paused=pause is None or pause >= 0,
            paused_seconds=pause / 1e6 if is_timed else None,
            pause_reason=reason,
        )

    def configure(self, pool: str, settings: str, version: int | None) -> bool:
        change = (settings, "" if version is None else version, _limits(settings))
        return bool(self._client.run("configure", pool, *change, new_request()))

    def pause(self, pool: str, seconds: float | None, reason: str | None = None) -> None:
        until = "" if seconds is None else micros(seconds)
        self._client.run("pause", pool, until, 0, signed(reason))

    def hold_off(self, pool: str, seconds: float, reason: str | None = None) -> None:
        self._client.run("pause", pool, micros(seconds), 1, signed(reason))

    def request_check(self, pool: str, max_workers: int) -> bool:
        return bool(self._client.run("request_check", pool, max_workers, new_request()))

    def begin_check(self, pool: str) -> None:
        self._client.run("begin_check", pool)

    def purge(self, pool: str, limit: int) -> int:
        return int(self._client.run("purge", pool, limit))

    def delete_pool(self, pool: str, limit: int) -> bool | None:
        answer = int(self._client.run("delete_pool", pool, limit))
        return None if answer < 0 else bool(answer)


def _limits(settings: str) -> str:
    """What a claim has to know of the settings: how many items each tenant may run."""
    read = settings_from(settings)
    if read.tenant_limit is None and not read.tenant_limits:
        return ""
    limits: dict[str, object] = {"each": dict(read.tenant_limits)}
    if read.tenant_limit is not None:
        limits["all"] = read.tenant_limit
    return jsontext.dumps(limits)
