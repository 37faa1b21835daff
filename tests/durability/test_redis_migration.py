"""A Redis store that the previous version wrote: it is migrated at open, its workers are drained.

redis_format_1.json.gz has the commands that make such a store again, as its scripts left it, and
those of its scripts that a worker of that version still sends after the migration.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from processes import Together, at_once
from servers.redis import RedisServer
from worlds import check_counts

from sprat.core import model
from sprat.core.errors import KeyConflict, StoreMismatch
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.redis import diagnostics
from sprat.store.redis.resp import ReplyError

FILE = Path(__file__).with_name("redis_format_1.json.gz")
UNCHANGED = {"held": "claimed", "bad": "poisoned", "done": "done", "late": "pending"}


class OldStore:
    """What the previous version left, on a server of its own."""

    def __init__(self) -> None:
        kept = json.loads(gzip.decompress(FILE.read_bytes()))
        self.about: dict[str, str] = kept["about"]
        self.scripts: dict[str, str] = kept["scripts"]
        self.server = RedisServer()
        for command in kept["commands"]:
            self.server.ask(*[part.encode("latin-1") for part in command])

    def run(self, name: str, *args: str | int) -> Any:
        """As a client of the previous version that is still connected."""
        return self.server.ask("EVAL", self.scripts[name], 1, "{sprat}", *args)


@pytest.fixture
def old() -> Iterator[OldStore]:
    store = OldStore()
    yield store
    store.server.stop()


def test_items_of_the_previous_format_keep_working(old: OldStore) -> None:
    with open_store(old.server.url) as store:
        pool = store.pool("papers")
        for name, status in UNCHANGED.items():
            item = store.get(old.about[name])
            assert (item.data, item.status) == (name, status)
            assert (item.task, item.transients, item.hold) == (None, 0, None)
        assert store.get(old.about["bad"]).error == "broken"
        assert pool.push({"b": 2, "a": 1}, key="k") == old.about["keyed"]
        with pytest.raises(KeyConflict):
            pool.push({"b": 2, "a": 1}, key="k", task="jobs:read")
        store.workers.register(WorkerRegistration(worker_id="new", pool_id="papers"))
        claimed = pool.claim("new")
        assert claimed is not None
        assert claimed.data == "plain"
        assert pool.complete(claimed)
        assert pool.requeue(old.about["bad"])
        check_counts(pool)


def test_workers_of_the_previous_version_are_drained(old: OldStore) -> None:
    with open_store(old.server.url) as store:
        workers = {worker.worker_id: worker for worker in store.workers.list()}
        told = {name: (worker.status, worker.reason) for name, worker in workers.items()}
        upgraded = diagnostics.UPGRADED
        assert told == {
            "w1": ("terminating", upgraded),
            "w2": ("terminating", None),
            "w3": ("terminating", upgraded),
            old.about["launched"]: ("terminated", upgraded),
        }
        assert [worker.renewals for worker in workers.values()] == [0, 0, 0, 0]


def test_worker_of_the_previous_version_settles_and_leaves(old: OldStore) -> None:
    item, token = old.about["held"], old.about["token"]
    with open_store(old.server.url) as store:
        assert old.run("heartbeat", "w1", 1, "[]", item, token) == ["terminating", []]
        settlement = (item, token, "", "complete", '"read"', "", 0)
        assert old.run("exchange", "papers", "w1", 1, 1, 0, "r", "0", "", "", 7, *settlement) == [
            "1",
            1,
            [],
        ]
        assert (store.get(item).status, store.get(item).result) == ("done", "read")
        assert old.run("update_status", "w1", 1, "terminated", "", "null") == 1
        record = store.workers.get("w1")
        assert record is not None
        assert record.status == "terminated"
        check_counts(store.pool("papers"))


def test_item_with_a_task_goes_to_no_worker_of_the_previous_version(old: OldStore) -> None:
    with open_store(old.server.url) as store:
        store.pool("papers").push("news", task="jobs:read")
    assert old.run("exchange", "papers", "w3", 1, 1, 0, "r", "0", "", "", 3)[2] == []


def test_process_of_the_previous_version_launches_no_more_workers(old: OldStore) -> None:
    with open_store(old.server.url) as store:
        seen = store.pool("papers").observe()
        assert (seen.version, seen.last_up_at is not None) == (1, True)
        live = [worker.worker_id for worker in store.workers.list(status=model.LIVE)]
        asked = {"pool": "papers", "group": None, "direction": "up", "launch": ["w9"]}
        asked |= {"drain": [], "reason": "", "max_workers": 9, "deadline": 1, "capabilities": []}
        with pytest.raises(ReplyError, match="WRONGTYPE"):
            old.run("record", "r", 1, json.dumps(asked), "{}")
        assert [worker.worker_id for worker in store.workers.list(status=model.LIVE)] == live


def test_old_rows_of_workers_live_on(old: OldStore) -> None:
    with open_store(old.server.url) as store:
        assert store.backend.keep_alive(["w1", "w2", old.about["launched"]]) == 2
        record = store.workers.get("w1")
        assert record is not None
        assert record.renewals == 0


def open_and_push(place: int, together: Together, url: str) -> str:
    together()
    with open_store(url) as store:
        return store.pool("papers").push(place)


def test_many_openers_migrate_once(old: OldStore) -> None:
    assert len(set(at_once(4, open_and_push, old.server.url))) == 4
    assert old.server.ask("GET", "{sprat}:format") == "2"


def test_older_client_is_refused(old: OldStore, monkeypatch: pytest.MonkeyPatch) -> None:
    open_store(old.server.url).close()
    monkeypatch.setattr(diagnostics, "FORMAT", 1)
    with pytest.raises(StoreMismatch, match=r"format 2 and this sprat knows 1: upgrade sprat"):
        open_store(old.server.url)
