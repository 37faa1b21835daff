"""The wake-up pipe: a push finds the process that attends to the pool, or that there is none."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sprat.launchers.process import wake_pipe
from sprat.launchers.process.wake_pipe import WakePipe, path_of, wake

URL, POOL = "sqlite:///fleet.db", "papers"


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv(wake_pipe.DESCRIPTOR, raising=False)


@pytest.fixture
def make() -> Iterator[Callable[[], WakePipe]]:
    pipes: list[WakePipe] = []

    def make() -> WakePipe:
        pipes.append(WakePipe(URL, POOL))
        return pipes[-1]

    yield make
    for pipe in pipes:
        pipe.close()


def test_without_a_fork_server_it_wakes_nothing() -> None:
    assert not wake(URL, POOL)


def test_a_wake_up_reaches_a_waiting_fork_server_once(make: Callable[[], WakePipe]) -> None:
    pipe = make()
    assert wake(URL, POOL)
    assert wake(URL, POOL)
    assert pipe.wait(60.0, lambda: False)
    assert pipe.clear()
    assert not pipe.clear()
    assert not pipe.wait(0.01, lambda: False)


def test_a_closed_reading_end_is_not_relied_on(
    make: Callable[[], WakePipe],
) -> None:
    pipe = make()
    assert wake(URL, POOL)
    pipe.close()
    assert not wake(URL, POOL)
    pipe.open()
    assert wake(URL, POOL)


def test_a_killed_fork_server_is_not_relied_on(make: Callable[[], WakePipe]) -> None:
    """Nothing of it stays but the file."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        make()
        os.write(write, b"!")
        os.read(os.pipe()[0], 1)  # until it is killed
        os._exit(1)
    os.read(read, 1)
    assert wake(URL, POOL)
    os.kill(pid, 9)
    os.waitpid(pid, 0)
    assert not wake(URL, POOL)
    assert os.path.exists(path_of(URL, POOL))
    os.close(read)
    os.close(write)


def test_one_fork_server_of_a_pool_is_the_one_that_waits(make: Callable[[], WakePipe]) -> None:
    first, second = make(), make()
    assert first.is_first()
    assert first.is_first()
    assert not second.is_first()
    first.close()
    assert second.is_first()


def test_a_full_pipe_still_wakes(make: Callable[[], WakePipe]) -> None:
    pipe = make()
    assert all(wake(URL, POOL) for _ in range(70_000))
    assert pipe.clear()


def test_each_pool_has_its_own(make: Callable[[], WakePipe]) -> None:
    make()
    assert not wake(URL, "others")
    assert not wake("sqlite:///other.db", POOL)


def test_a_pipe_that_was_deleted_and_made_again_is_found(make: Callable[[], WakePipe]) -> None:
    """/tmp is cleaned while programs run for long."""
    old = make()
    assert wake(URL, POOL)
    os.unlink(path_of(URL, POOL))
    old.close()
    new = make()
    assert wake(URL, POOL)
    assert new.clear()


def test_what_is_no_pipe_of_this_user_is_not_used() -> None:
    Path(path_of(URL, POOL)).write_text("")
    assert not wake(URL, POOL)
    assert wake_pipe.open_reading(URL, POOL) == -1
    assert WakePipe(URL, POOL).is_first(), "where there can be no pipe, each fork server waits"
