"""The doorbell: a push finds the process that looks after the pool, or finds that there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprat.launchers.process import doorbell
from sprat.launchers.process.doorbell import Doorbell, path_of, ring

URL, POOL = "sqlite:///fleet.db", "papers"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv(doorbell.HANDED_OVER, raising=False)


@pytest.fixture
def make() -> Iterator[Callable[[], Doorbell]]:
    made: list[Doorbell] = []

    def make() -> Doorbell:
        made.append(Doorbell(URL, POOL))
        return made[-1]

    yield make
    for bell in made:
        bell.close()


def test_without_a_nest_it_does_not_ring() -> None:
    assert not ring(URL, POOL)


def test_a_ring_wakes_a_waiting_nest_and_is_heard_once(make: Callable[[], Doorbell]) -> None:
    bell = make()
    assert ring(URL, POOL)
    assert ring(URL, POOL)
    assert bell.wait(60.0, lambda: False)
    assert bell.silence()
    assert not bell.silence()
    assert not bell.wait(0.01, lambda: False)


def test_a_nest_that_has_closed_its_end_is_not_relied_on(make: Callable[[], Doorbell]) -> None:
    bell = make()
    assert ring(URL, POOL)
    bell.close()
    assert not ring(URL, POOL)
    bell.open()
    assert ring(URL, POOL)


def test_a_killed_nest_is_not_relied_on(make: Callable[[], Doorbell]) -> None:
    """Nothing of it stays but the file."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        make()
        os.write(write, b"!")
        os.read(os.pipe()[0], 1)  # until it is killed
        os._exit(1)
    os.read(read, 1)
    assert ring(URL, POOL)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert not ring(URL, POOL)
    assert os.path.exists(path_of(URL, POOL))
    os.close(read)
    os.close(write)


def test_one_nest_of_a_pool_is_the_one_that_waits(make: Callable[[], Doorbell]) -> None:
    first, second = make(), make()
    assert first.is_first()
    assert first.is_first()
    assert not second.is_first()
    first.close()
    assert second.is_first()


def test_a_full_bell_still_rings(make: Callable[[], Doorbell]) -> None:
    bell = make()
    assert all(ring(URL, POOL) for _ in range(70_000))
    assert bell.silence()


def test_each_pool_has_its_own(make: Callable[[], Doorbell]) -> None:
    make()
    assert not ring(URL, "others")
    assert not ring("sqlite:///other.db", POOL)


def test_a_pipe_that_was_deleted_and_made_again_is_found(make: Callable[[], Doorbell]) -> None:
    """/tmp is cleaned while programs run for long."""
    old = make()
    assert ring(URL, POOL)
    os.unlink(path_of(URL, POOL))
    old.close()
    new = make()
    assert ring(URL, POOL)
    assert new.silence()


def test_what_is_no_pipe_of_this_user_is_not_used() -> None:
    Path(path_of(URL, POOL)).write_text("")
    assert not ring(URL, POOL)
    assert doorbell.open_reading(URL, POOL) == -1
    assert Doorbell(URL, POOL).is_first(), "where there can be no bell, each nest waits"
