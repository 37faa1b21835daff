"""Sleeping until there is something to do.

Whoever waits listens on a channel of its own, and then puts its name on the pool's list of
waiters in the same script that sees that there is no work: a push after that rings, and rings for
as many waiters as it has items. Who hears that work is there claims it at once, without another
look. A missed ring is healed by the next look, a second later.
"""

from __future__ import annotations

import os
import time

from sprat.store.redis.resp import ReplyError, RespConnection

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.store.backend import WorkerRef
    from sprat.store.redis.client import RedisClient

WORK, LEAVE = 1, 2  # what look.lua says


class WakeupChannel:
    """A connection that hears when somebody rings for it. For one thread at a time."""

    def __init__(self, link: RedisClient, worker_id: str) -> None:
        self.name = os.urandom(8).hex()
        self.worker_id = worker_id
        self.pid = os.getpid()
        self._wire: RespConnection = link.connect()
        channels = [f"{link.address.tag}:bell:{self.name}"]
        if worker_id:
            channels.append(f"{link.address.tag}:leave:{worker_id}")
        for channel in channels:
            self._wire.ask("SUBSCRIBE", channel)

    def wait(self, seconds: float, since: int) -> bool:
        """Sleep until it rings or the time is up; whether it rang for work that is there, and for
        a waiter that began to wait at this moment: what rang before was for an earlier wait."""
        self._wire.receive_within(seconds)
        rang = False
        while (message := self._wire.next_reply()) is not False:
            rang = rang or message[2] == str(since)
        return rang

    def close(self) -> None:
        self._wire.close()


class WakeupChannels:
    """The bells of one store, kept for the next wait."""

    def __init__(self, link: RedisClient) -> None:
        self._link = link
        self._idle: list[WakeupChannel] = []

    def has_one(self) -> bool:
        """Whether to wait costs no new connection."""
        return bool(self._idle)

    def take(self, worker_id: str) -> WakeupChannel | None:
        """A bell for this worker; None while there is no way to listen."""
        while self._idle:
            bell = self._idle.pop()
            if bell.worker_id == worker_id and bell.pid == os.getpid():
                return bell
            bell.close()
        try:
            return WakeupChannel(self._link, worker_id)
        except (OSError, ReplyError):
            return None

    def put(self, bell: WakeupChannel) -> None:
        self._idle.append(bell)

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()


class CancelChannels:
    """Descriptors that become readable when a claim of a worker was taken away. For one thread."""

    def __init__(self, link: RedisClient) -> None:
        self._link = link
        self._bells: dict[str, RedisCancelSignal] = {}

    def descriptor(self, worker_id: str) -> int | None:
        """That of this worker's bell; None while there is no way to listen."""
        bell = self._bells.get(worker_id)
        if bell is not None and bell.pid == os.getpid() and not bell.is_broken:
            return bell.wire.fileno()
        if bell is not None:
            del self._bells[worker_id]
            bell.wire.close()
        if self._link.is_away:  # to find that out again could take seconds
            return None
        try:
            self._bells[worker_id] = bell = RedisCancelSignal(self._link, worker_id)
        except (OSError, ReplyError):
            return None
        return bell.wire.fileno()

    def silence(self) -> None:
        """What rang is heard. A bell whose connection ended is replaced when it is next wanted."""
        for bell in list(self._bells.values()):
            if bell.pid == os.getpid():
                bell.silence()

    def close(self) -> None:
        while self._bells:
            self._bells.popitem()[1].wire.close()


class RedisCancelSignal:
    def __init__(self, link: RedisClient, worker_id: str) -> None:
        self.pid = os.getpid()
        self.is_broken = False
        self.wire: RespConnection = link.connect()
        self.wire.ask("SUBSCRIBE", f"{link.address.tag}:leave:{worker_id}")

    def silence(self) -> None:
        try:
            self.wire.take_in()
            while self.wire.next_reply() is not False:
                pass
        except (OSError, ReplyError):
            self.is_broken = True


def wait(
    link: RedisClient, bells: WakeupChannels, pool: str, worker: WorkerRef | None, seconds: float
) -> bool:
    worker_id, incarnation = ("", None) if worker is None else worker
    who = (pool, worker_id, "" if incarnation is None else incarnation)
    end = time.monotonic() + seconds
    if seconds <= 0 or not bells.has_one():
        said, *_ = link.run("look", *who, "")
        if said or seconds <= 0:
            return bool(said == WORK)
    bell = bells.take(worker_id)
    is_listed = False
    try:
        while True:
            is_listed = bell is not None
            said, pause, since = link.run("look", *who, bell.name if bell else "")
            left = end - time.monotonic()
            if said == WORK:
                is_listed = False
                return True
            if said or left <= 0:
                return False
            if bell is None:
                time.sleep(min(left, pause / 1e6, 0.05))
                bell = bells.take(worker_id)
                continue
            try:
                if bell.wait(min(left, pause / 1e6), since):
                    is_listed = False  # who rings takes us off the list
                    return True
            except OSError:  # the server went away: it takes a new bell to hear it again
                bell.close()
                bell = None
    finally:
        if bell is not None:
            if is_listed:
                _leave_list(link, pool, bell)
            bells.put(bell)


def _leave_list(link: RedisClient, pool: str, bell: WakeupChannel) -> None:
    waiter = f"{bell.name}\1{bell.worker_id}"
    link.ask("ZREM", f"{link.address.tag}:pool:{pool}:waiting", waiter)
