"""Power loss: what was not synced is gone. A VFS under SQLite sees every write and every sync.

A cut leaves of each file what its last sync left, plus any of the writes after it."""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from worlds import all_items, check_counts

from sprat.core.model import WorkerRegistration, WorkItem
from sprat.store.open_store import open_store
from sprat.store.sqlite import connection, schema
from sprat.store.store import Store

Write = tuple[int, bytes]


class Disk:
    """The files as they are after their last sync, and what was written since."""

    def __init__(self, place: Path) -> None:
        self.synced: dict[str, bytes] = {}
        self.unsynced: dict[str, list[Write]] = {}
        self.syncs: Counter[str] = Counter()
        self._place = place
        self._cuts = 0

    def write(self, name: str, offset: int, data: bytes) -> None:
        self.unsynced.setdefault(name, []).append((offset, data))

    def sync(self, name: str) -> None:
        self.syncs[name.rpartition("-")[2] if "-" in Path(name).name else "db"] += 1
        self.synced[name] = Path(name).read_bytes()
        self.unsynced.pop(name, None)

    def delete(self, name: str) -> None:
        self.synced.pop(name, None)
        self.unsynced.pop(name, None)

    def cut(self, survives: Callable[[], bool] = lambda: False) -> Store:
        """The store that is there when the power is back; `survives` is asked of every write
        that was not synced."""
        self._cuts += 1
        place = self._place / f"cut{self._cuts}"
        place.mkdir()
        for name in {*self.synced, *self.unsynced}:
            data = bytearray(self.synced.get(name, b""))
            for offset, piece in self.unsynced.get(name, ()):
                if survives():
                    data.extend(bytes(max(0, offset + len(piece) - len(data))))
                    data[offset : offset + len(piece)] = piece
            (place / Path(name).name).write_bytes(data)
        return open_store(f"sqlite:///{place}/fleet.db")

    def forget_cuts(self) -> None:
        for number in range(1, self._cuts + 1):
            shutil.rmtree(self._place / f"cut{number}", ignore_errors=True)


class WatchedFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: apsw.URIFilename | str | None, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__("unix", name, flags)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - SQLite's name
        super().xWrite(data, offset)
        self._disk.write(self._name, offset, bytes(data))

    def xSync(self, flags: int) -> None:  # noqa: N802
        super().xSync(flags)
        self._disk.sync(self._name)


class WatchedVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        super().__init__("watched", "unix")

    def xOpen(self, name: apsw.URIFilename | str | None, flags: list[int]) -> WatchedFile:  # noqa: N802
        return WatchedFile(self._disk, name, flags)

    def xDelete(self, name: str, sync_directory: bool) -> None:  # noqa: N802
        super().xDelete(name, sync_directory)
        self._disk.delete(name)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """SQLite's files go to this disk, as long as `opened` opens them."""
    disk = Disk(tmp_path)
    vfs = WatchedVFS(disk)
    yield disk
    vfs.unregister()
    disk.forget_cuts()


@pytest.fixture
def opened(disk: Disk, tmp_path: Path) -> Iterator[Callable[..., Store]]:
    stores: list[Store] = []

    def opened(options: str = "") -> Store:
        apsw.set_default_vfs("watched")
        try:
            stores.append(open_store(f"sqlite:///{tmp_path}/fleet.db{options}"))
        finally:
            apsw.set_default_vfs("unix")
        return stores[-1]

    yield opened
    for store in stores:
        store.close()


def must_claim(store: Store) -> WorkItem:
    item = store.pool("papers").claim("w1")
    assert item is not None
    return item


def test_push_is_synced_once_and_claim_and_settle_are_not(
    opened: Callable[..., Store], disk: Disk
) -> None:
    store = opened()
    pool = store.pool("papers")
    store.workers.register(WorkerRegistration(worker_id="w1"))
    pool.push("first")  # begins the log, which takes a sync of its own
    disk.syncs.clear()
    pool.push("second")
    assert disk.syncs == {"wal": 1}
    pool.push_many(range(1000))
    assert disk.syncs == {"wal": 2}
    item = must_claim(store)
    store.workers.heartbeat("w1")
    assert pool.complete(item, "done")
    assert pool.fail(must_claim(store), "failed")
    assert disk.syncs == {"wal": 2}


def test_with_sync_all_claim_and_settle_are_synced_too(
    opened: Callable[..., Store], disk: Disk
) -> None:
    store = opened("?sync=all")
    pool = store.pool("papers")
    store.workers.register(WorkerRegistration(worker_id="w1"))
    pool.push("first")
    disk.syncs.clear()
    item = must_claim(store)
    assert disk.syncs == {"wal": 1}
    assert pool.complete(item, "done")
    assert disk.syncs == {"wal": 2}
    with disk.cut() as after:
        assert after.get(item.id).result == "done"


def test_acknowledged_push_survives_and_a_claim_may_be_undone(
    opened: Callable[..., Store], disk: Disk
) -> None:
    store = opened()
    pool = store.pool("papers")
    store.workers.register(WorkerRegistration(worker_id="w1"))
    item_id = pool.push("work")
    assert pool.complete(must_claim(store), "done")
    assert pool.get(item_id).status == "done"
    with disk.cut() as after:
        assert after.get(item_id).status == "pending"
        assert after.pool("papers").counts().pending == 1


def test_settle_before_a_push_survives_with_it(opened: Callable[..., Store], disk: Disk) -> None:
    store = opened()
    store.workers.register(WorkerRegistration(worker_id="w1"))
    item_id = store.pool("papers").push("work")
    assert store.pool("papers").complete(must_claim(store), "done")
    store.pool("other").push("next")
    with disk.cut() as after:
        assert after.get(item_id).result == "done"


@pytest.mark.parametrize("seed", range(4))
def test_store_is_whole_after_a_cut_at_any_moment(
    opened: Callable[..., Store], disk: Disk, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Often in the middle of folding the log into the file, with some of the unsynced writes
    on the disk and some not."""
    monkeypatch.setattr(connection, "CHECKPOINT_BYTES", 25 * schema.PAGE_BYTES)
    chance = random.Random(seed)
    store = opened()
    pool = store.pool("papers")
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=3600))
    pushed: set[str] = set()
    for step in range(120):
        if chance.random() < 0.3:
            pushed.update(pool.push_many(["x" * 500] * chance.randint(1, 10)))
        elif (item := pool.claim("w1")) is not None and chance.random() < 0.8:
            pool.complete(item, step)
        if step % 6 == 0:
            with disk.cut(lambda: chance.random() < 0.5) as after:
                check_whole(after, pushed)
    assert disk.syncs["db"] > 2, "the log was never folded into the file"


def check_whole(store: Store, pushed: set[str]) -> None:
    pool = store.pool("papers")
    items = all_items(pool)
    assert {item.id for item in items} == pushed
    assert all(item.status != "done" or item.result is not None for item in items)
    check_counts(pool)
    db = apsw.Connection(str(store.describe()["path"]))
    assert db.pragma("integrity_check") == "ok"
    db.close()
