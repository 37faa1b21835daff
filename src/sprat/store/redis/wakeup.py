"""Sleeping until there is something to do.

A waiter subscribes to a channel of its own, and then puts its name on the pool's list of waiters,
in the same script that finds no work: a push after that wakes as many waiters as it has items. A
waiter that is woken for work claims it at once, without another look. A missed wake-up is made up
for by the next look, a second later.
"""

from __future__ import annotations

import os

from sprat.core.runtime import runtime
from sprat.store.redis.resp import ReplyError, RespConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.backend import WorkerRef
    from sprat.store.redis.client import RedisClient

WORK, LEAVE = 1, 2  # replies of look.lua


class WakeupChannel:
    """A connection that receives wake-ups. For one thread at a time."""

    def __init__(self, client: RedisClient, worker_id: str) -> None:
        self.name = runtime.random_bytes(8).hex()
        self.worker_id = worker_id
        self.pid = os.getpid()
        self._connection: RespConnection = client.connect()
        channels = [f"{client.address.tag}:bell:{self.name}"]  # earlier versions publish there
        if worker_id:
            channels.append(f"{client.address.tag}:leave:{worker_id}")
        for channel in channels:
            self._connection.ask("SUBSCRIBE", channel)

    def wait(self, seconds: float, since: int) -> bool:
        """Sleep until a wake-up or until the time is up; whether there is work for a waiter that
        began to wait at this moment (a wake-up from before was for an earlier wait)."""
        self._connection.receive_within(seconds)
        has_work = False
        while (message := self._connection.next_reply()) is not False:
            has_work = has_work or message[2] == str(since)
        return has_work

    def close(self) -> None:
        self._connection.close()


class WakeupChannels:
    """The channels of one store, kept for the next wait."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._idle: list[WakeupChannel] = []

    def has_idle(self) -> bool:
        """Whether to wait costs no new connection."""
        return bool(self._idle)

    def take(self, worker_id: str) -> WakeupChannel | None:
        """A channel for this worker; None while no connection can be opened."""
        while self._idle:
            channel = self._idle.pop()
            if channel.worker_id == worker_id and channel.pid == os.getpid():
                return channel
            channel.close()
        try:
            return WakeupChannel(self._client, worker_id)
        except (OSError, ReplyError):
            return None

    def put(self, channel: WakeupChannel) -> None:
        self._idle.append(channel)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class CancelChannels:
    """Descriptors that become readable when a claim of a worker was taken away. For one thread."""

    def __init__(self, client: RedisClient) -> None:
        self._client = client
        self._signals: dict[str, RedisCancelSignal] = {}

    def descriptor(self, worker_id: str) -> int | None:
        """The descriptor of this worker's signal; None while no connection can be opened."""
        signal = self._signals.get(worker_id)
        if signal is not None and signal.pid == os.getpid() and not signal.is_broken:
            return signal.connection.fileno()
        if signal is not None:
            del self._signals[worker_id]
            signal.connection.close()
        if self._client.is_away:  # to find that out again could take seconds
            return None
        try:
            self._signals[worker_id] = signal = RedisCancelSignal(self._client, worker_id)
        except (OSError, ReplyError):
            return None
        return signal.connection.fileno()

    def clear(self) -> None:
        """Read what has come. A signal whose connection ended is replaced on its next use."""
        for signal in list(self._signals.values()):
            if signal.pid == os.getpid():
                signal.clear()

    def close(self) -> None:
        while self._signals:
            self._signals.popitem()[1].connection.close()


class RedisCancelSignal:
    def __init__(self, client: RedisClient, worker_id: str) -> None:
        self.pid = os.getpid()
        self.is_broken = False
        self.connection: RespConnection = client.connect()
        self.connection.ask("SUBSCRIBE", f"{client.address.tag}:leave:{worker_id}")

    def clear(self) -> None:
        try:
            self.connection.take_in()
            while self.connection.next_reply() is not False:
                pass
        except (OSError, ReplyError):
            self.is_broken = True


def wait(
    client: RedisClient,
    channels: WakeupChannels,
    pool: str,
    worker: WorkerRef | None,
    seconds: float,
) -> bool:
    worker_id, incarnation = ("", None) if worker is None else worker
    waiter = (pool, worker_id, "" if incarnation is None else incarnation)
    end = runtime.monotonic() + seconds
    if seconds <= 0 or not channels.has_idle():
        answer, *_ = client.run("look", *waiter, "")
        if answer or seconds <= 0:
            return bool(answer == WORK)
    channel = channels.take(worker_id)
    is_listed = False
    try:
        while True:
            is_listed = channel is not None
            answer, pause, since = client.run("look", *waiter, channel.name if channel else "")
            left = end - runtime.monotonic()
            if answer == WORK:
                is_listed = False
                return True
            if answer or left <= 0:
                return False
            if channel is None:
                runtime.sleep(min(left, pause / 1e6, 0.05))
                channel = channels.take(worker_id)
                continue
            try:
                if channel.wait(min(left, pause / 1e6), since):
                    is_listed = False  # the wake-up has removed it from the list
                    return True
            except OSError:  # the server went away: only a new channel hears from it again
                channel.close()
                channel = None
    finally:
        if channel is not None:
            if is_listed:
                _leave_list(client, pool, channel)
            channels.put(channel)


def _leave_list(client: RedisClient, pool: str, channel: WakeupChannel) -> None:
    waiter = f"{channel.name}\1{channel.worker_id}"
    client.ask("ZREM", f"{client.address.tag}:pool:{pool}:waiting", waiter)
