"""A full disk: what was acknowledged stays, what fails changed nothing, and it goes on after."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
from worlds import all_items, check_counts

from sprat.cli import main
from sprat.core.errors import StoreUnavailable
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store

BALLAST_BYTES = 600_000


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 2 MB with a ballast file, to be deleted when it has become too small."""
    place = tmp_path / "disk"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "sprat-test", str(place)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs the right to mount a small disk: {error}")
    (place / "ballast").write_bytes(bytes(BALLAST_BYTES))
    yield place
    subprocess.run(["umount", "--lazy", str(place)], check=True)


@pytest.fixture
def store(small_disk: Path) -> Iterator[Store]:
    store = open_store(f"sqlite:///{small_disk}/fleet.db")
    store.workers.register(WorkerRegistration(worker_id="w1", lease_seconds=3600))
    yield store
    store.close()
    db = apsw.Connection(str(small_disk / "fleet.db"))
    assert db.pragma("integrity_check") == "ok"
    db.close()


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(StoreUnavailable) as caught:
        call()
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence


def push_until_full(store: Store) -> list[str]:
    """Push ever smaller items until not even the smallest fits."""
    pool = store.pool("papers")
    pushed: list[str] = []
    for size in (20_000, 1000, 0):
        assert "disk is full" in refusal(lambda size=size: push_for_ever(pool, size, pushed))
    return pushed


def push_for_ever(pool: WorkPool, size: int, pushed: list[str]) -> None:
    while True:
        pushed.append(pool.push("x" * size))


def fill(place: Path) -> None:
    """Leave no byte free."""
    with open(place / "filler", "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def test_push_says_so_and_stores_nothing(store: Store) -> None:
    pushed = push_until_full(store)
    assert pushed
    sentence = refusal(lambda: store.pool("papers").push_many(["x" * 5000] * 100))
    assert "disk is full" in sentence
    assert "free some space" in sentence
    assert [item.id for item in all_items(store.pool("papers"))] == pushed
    assert store.pool("papers").counts().pending == len(pushed)


def test_the_doctor_sees_it(
    store: Store, small_disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main.main(["doctor", "--url", store.url]) == 0
    assert "warn  disk        1 MB free" in capsys.readouterr().out
    fill(small_disk)
    assert main.main(["doctor", "--url", store.url]) == 1
    assert "FAIL  disk        full: nothing can be pushed or finished" in capsys.readouterr().out


def test_same_store_goes_on_when_there_is_space_again(store: Store, small_disk: Path) -> None:
    pushed = push_until_full(store)
    (small_disk / "ballast").unlink()
    pool = store.pool("papers")
    pushed.append(pool.push("after"))
    assert [item.id for item in all_items(pool)] == pushed
    item = pool.claim("w1")
    assert item is not None
    assert pool.complete(item, "done")
    check_counts(pool)


def test_claim_and_settle_work_or_change_nothing(store: Store, small_disk: Path) -> None:
    pool = store.pool("papers")
    push_until_full(store)
    fill(small_disk)
    done = held = 0
    refusals: list[str] = []
    for number in range(50):
        try:
            item = pool.claim("w1")
            assert item is not None
            held += 1
            assert pool.complete(item, number)
            held -= 1
            done += 1
        except StoreUnavailable as error:
            refusals.append(str(error))
    assert all("disk is full" in sentence for sentence in refusals)
    counts = pool.counts()
    assert (counts.claimed, counts.done) == (held, done)
    (small_disk / "filler").unlink()
    (small_disk / "ballast").unlink()
    check_counts(pool)
    for item in pool.items("claimed"):
        assert pool.complete(item, "late")
    assert pool.counts().done == done + held


def test_looking_works_on_a_full_disk(store: Store, small_disk: Path) -> None:
    pool = store.pool("papers")
    pool.push_many(range(3))
    assert pool.claim("w1") is not None  # leaves statistics that are still to be written
    fill(small_disk)
    refusal(lambda: pool.push("x" * 5000))
    assert pool.counts().pending == 2
    assert pool.observe().counts == pool.counts()
    assert pool.stats().arrivals == 3
    assert pool.wait(seconds=0)
    assert not store.pool("empty").wait(seconds=0.01)


def test_full_disk_does_not_keep_a_store_from_closing(store: Store, small_disk: Path) -> None:
    pool = store.pool("papers")
    pool.push_many(range(3))
    item = pool.claim("w1")
    assert item is not None
    fill(small_disk)
    try:
        pool.complete(item)
    except StoreUnavailable:
        pass
    store.close()
    assert "was closed" in refusal(pool.counts)


def test_new_store_on_a_full_disk_is_refused_in_one_sentence(small_disk: Path) -> None:
    fill(small_disk)
    assert "disk" in refusal(lambda: open_store(f"sqlite:///{small_disk}/new.db"))
    (small_disk / "filler").unlink()
    with open_store(f"sqlite:///{small_disk}/new.db") as store:
        assert store.pools() == []
