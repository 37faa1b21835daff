"""The store in a Redis or Valkey server. Each verb is one Lua script (scripts.py, lua/*.lua).

All keys begin with {store}, the name of the store in braces: they fall into one slot of a cluster,
so that every verb is atomic, whatever pools and workers it touches.

    {store}:items      hash   id -> the item: pool, status, attempts, claim... (rows.lua)
    {store}:data       hash   id -> payload, JSON text, after "@", task, newline if it has a task
    {store}:more       hash   id -> error, checkpoint, progress...: what few items have
    {store}:held:WORKER  set  id: what a worker holds
    {store}:seq        the number of items ever pushed: their order of arrival
    {store}:pools      set    names
    {store}:workers    hash   id -> the worker;  {store}:live  zset  id by age
    {store}:format     the number of this layout (diagnostics.py)
    {store}:clock      hash   how far the store's clock is ahead of the server's, and the mark:
                              when the store last worked, and in which run (marks.lua)
    {store}:documents:KIND, :names:KIND, :expiries, :buckets
    {store}:pool:NAME:about      hash  settings, version, pause, turn, scaling pass
    {store}:pool:NAME:order      zset  id by arrival, all items
    {store}:pool:NAME:ready      zset  lanes side by side (lanes.lua)
    {store}:pool:NAME:delayed    zset  id by due time
    {store}:pool:NAME:parked     zset  items that wait for a worker that knows their task
    {store}:pool:NAME:done, :poisoned, :cancelled   zset  id by end, for retention
    {store}:pool:NAME:counts     hash  group, status -> n
    {store}:pool:NAME:keys       hash  idempotency key -> digest of the payload, id
    {store}:pool:NAME:running, :turns      hash  tenant -> claimed items, last turn
    {store}:pool:NAME:stats      hash  bucket of 10 or 900 seconds -> sums, and -> arrivals
    {store}:pool:NAME:fresh      hash  the sums of the bucket of now
    {store}:pool:NAME:totals     hash  sums of the buckets that were rolled up, decisions
    {store}:pool:NAME:waiting    zset  waiters by when they began to wait (wakeup.py)
    {store}:pool:NAME:live, :ended   zset  workers of the pool
    {store}:pool:NAME:scales     hash  group -> scale set;  :decisions  list, newest first
"""

from __future__ import annotations

from sprat.core.errors import InvalidInput
from sprat.store.lost_claims import LostClaims
from sprat.store.redis import diagnostics
from sprat.store.redis.address import parse
from sprat.store.redis.client import RedisClient
from sprat.store.redis.documents import RedisDocuments
from sprat.store.redis.items import RedisItems
from sprat.store.redis.pools import RedisPools
from sprat.store.redis.scaling import RedisScaling
from sprat.store.redis.wakeup import CancelChannels, WakeupChannels
from sprat.store.redis.workers import RedisWorkers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from socket import socket


class RedisBackend(RedisItems, RedisPools, RedisWorkers, RedisScaling, RedisDocuments):
    """The verbs are in the modules that it inherits from; this opens and closes the store."""

    def __init__(
        self,
        url: str,
        *,
        connect: Callable[[str, int], socket] | None = None,
        password: str | Callable[[], str] | None = None,
    ) -> None:
        address = parse(url)
        if connect is not None and address.path is not None:
            raise InvalidInput("connect= has no use with redis+unix://, which names its socket")
        if connect is not None or password is not None:
            password = address.password if password is None else password
            address = address.replace(connect=connect, password=password)
        self._client = RedisClient(address)
        self._lost_claims = LostClaims()
        self._wakeup_channels = WakeupChannels(self._client)
        self._cancel_channels = CancelChannels(self._client)
        try:
            diagnostics.check(self._client)
        except BaseException:
            self.close()
            raise

    def describe(self) -> dict[str, object]:
        return diagnostics.describe(self._client)

    def close(self) -> None:
        self._wakeup_channels.close()
        self._cancel_channels.close()
        self._client.close()
