"""The file of a store is deleted or replaced while processes have it open: nothing is acknowledged
that the next process to open the path would not find."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from patience import eventually
from processes import FORK

from sprat.core.errors import StoreMismatch
from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.sqlite.backend import SqliteBackend
from sprat.store.store import Store

Harm = Callable[[Path], None]


def delete(path: Path) -> None:
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)


def replace_by_another_store(path: Path) -> None:
    with open_store(f"sqlite:///{path}.new") as other:
        other.pool("p").push("of another store")
    delete(path)
    os.replace(f"{path}.new", path)


def replace_by_a_copy(path: Path) -> None:
    shutil.copy(path, f"{path}.copy")
    os.replace(f"{path}.copy", path)


def rename(path: Path) -> None:
    path.rename(f"{path}.away")


every_harm = pytest.mark.parametrize(
    "harm", [delete, replace_by_another_store, replace_by_a_copy, rename]
)

VERBS: dict[str, Callable[[Store], object]] = {
    "push": lambda store: store.pool("p").push(2),
    "push_many": lambda store: store.pool("p").push_many([2, 3]),
    "requeue": lambda store: store.pool("p").requeue("x"),
    "configure": lambda store: store.pool("p").configure(max_workers=3),
    "heartbeat": lambda store: store.workers.heartbeat("w1"),
    "register": lambda store: store.workers.register(WorkerRegistration(worker_id="w2")),
    "reap": lambda store: store.workers.reap(),
    "request_check": lambda store: store.backend.request_check("p", 3),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "fleet.db"


@pytest.fixture
def url(path: Path) -> str:
    return f"sqlite:///{path}"


def opened(url: str) -> Store:
    store = open_store(url)
    store.pool("p").configure(start_on_push=False)
    store.workers.register(WorkerRegistration(worker_id="w1", pool_id="p"))
    store.pool("p").push(1)
    return store


@every_harm
@pytest.mark.parametrize("verb", VERBS)
def test_a_write_into_a_file_that_is_gone_is_an_error(
    url: str, path: Path, harm: Harm, verb: str
) -> None:
    with opened(url) as store:
        harm(path)
        for _ in range(2):
            with pytest.raises(StoreMismatch, match=r"deleted or replaced .*: restart"):
                VERBS[verb](store)


@every_harm
def test_opening_the_path_again_works(url: str, path: Path, harm: Harm) -> None:
    with opened(url) as store:
        harm(path)
        with pytest.raises(StoreMismatch):
            store.pool("p").push(2)
        with open_store(url) as again:
            again.pool("p").configure(start_on_push=False)
            item_id = again.pool("p").push("after")
            assert again.get(item_id).status == "pending"
            assert 2 not in [item.data for item in again.pool("p").items()]


@every_harm
def test_a_fork_does_not_open_another_file(url: str, path: Path, harm: Harm) -> None:
    """Connections are closed for the moment of a fork, and opened again afterwards."""
    with opened(url) as store:
        harm(path)
        process = FORK.Process(target=lambda: None)
        process.start()
        process.join()
        with pytest.raises(StoreMismatch):
            store.pool("p").push(2)
        with pytest.raises(StoreMismatch):
            store.pool("p").counts()
    assert path.exists() == (harm in (replace_by_another_store, replace_by_a_copy))


def test_a_push_during_which_the_file_goes_is_not_acknowledged(url: str, path: Path) -> None:
    with opened(url) as store:
        assert isinstance(store.backend, SqliteBackend)
        with pytest.raises(StoreMismatch):
            store.backend._connection.write_synced(lambda tx: delete(path))


@pytest.mark.parametrize(
    ("isolation", "seconds"), [("process", None), ("process", 600), ("none", 600)]
)
def test_a_worker_leaves_and_says_why(
    url: str, path: Path, tmp_path: Path, isolation: str, seconds: float | None
) -> None:
    (tmp_path / "jobs.py").write_text("from time import sleep\n")
    with open_store(url) as store:
        store.pool("p").configure(
            handler="jobs:sleep",
            directory=str(tmp_path),
            start_on_push=False,
            isolation=isolation,
            heartbeat_seconds=0.2,
            idle_seconds=600.0,
        )
        if seconds is not None:
            store.pool("p").push(seconds)
    command = [sys.executable, "-m", "sprat", "work", "p", "--url", url]
    worker = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    try:
        with open_store(url) as store:
            claims = 0 if seconds is None else 1
            eventually(lambda: [w for w in store.workers.list() if w.claims == claims])
        delete(path)
        _, said = worker.communicate(timeout=60)
    finally:
        if worker.poll() is None:
            worker.send_signal(signal.SIGKILL)
            worker.wait()
    assert worker.returncode == 2
    assert "was deleted or replaced while it was open" in said
    assert "Traceback" not in said
    assert not path.exists()
