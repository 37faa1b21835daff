"""HooksRegistry makes one hooks object per state: one object claims, another one settles."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from flatmachines import DistributedWorkerHooks, FlatMachine, HooksRegistry
from machine_hooks import Echo
from processes import beside, hear

import sprat
from sprat.core.errors import NotClaimedHere
from sprat.flatmachines import Backends, SpratHooks, launching
from sprat.fleet import checker

MACHINE = Path(__file__).parent / "job_worker.yml"


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/fleet.db"


def hooks_classes(url: str, made: list[object]) -> dict[str, type[DistributedWorkerHooks]]:
    class OverBackends(DistributedWorkerHooks):
        def __init__(self) -> None:
            backends = Backends(sprat.open_store(url))
            super().__init__(registration=backends.registration, work=backends.work)
            made.append(self)

    class OverHooks(SpratHooks):
        def __init__(self) -> None:
            super().__init__(sprat.open_store(url))
            made.append(self)

    return {"Backends": OverBackends, "SpratHooks": OverHooks}


def run(hooks: type[DistributedWorkerHooks]) -> Any:
    registry = HooksRegistry()
    registry.register("distributed", hooks)
    registry.register("echo", Echo)
    machine = FlatMachine(config_file=str(MACHINE), hooks_registry=registry)
    return asyncio.run(machine.execute(input={"pool_id": "papers", "worker_id": "w1"}))


@pytest.mark.parametrize("kind", ["Backends", "SpratHooks"])
def test_one_hooks_object_per_state_completes_the_job(url: str, kind: str) -> None:
    made: list[object] = []
    with sprat.open_store(url) as store:
        item_id = store.pool("papers").push({"n": 7})
        assert run(hooks_classes(url, made)[kind])["job_id"] == item_id
        assert len(made) > 1
        item = store.get(item_id)
        assert (item.status, item.result, item.attempts) == ("done", {"echo": 7}, 1)
        assert run(hooks_classes(url, made)[kind]) == {"status": "no_work_available"}


@pytest.mark.parametrize("kind", ["Backends", "SpratHooks"])
def test_one_hooks_object_per_state_charges_a_failure(url: str, kind: str) -> None:
    with sprat.open_store(url) as store:
        item_id = store.pool("papers").push({"n": 1, "fail": True}, max_retries=2)
        run(hooks_classes(url, [])[kind])
        assert (store.get(item_id).status, store.get(item_id).attempts) == ("pending", 1)
        run(hooks_classes(url, [])[kind])
        assert store.get(item_id).status == "poisoned"


def test_settling_what_another_process_claimed_is_an_error(url: str) -> None:
    with sprat.open_store(url) as store:
        item_id = store.pool("papers").push({"n": 1})
        process, pipe = beside(_claim, url)
        assert hear(pipe) == item_id
        process.join()
        pool = Backends(store).work.pool("papers")
        with pytest.raises(NotClaimedHere, match="settle it in the process that claimed it"):
            asyncio.run(pool.complete(item_id, "result"))
        with pytest.raises(NotClaimedHere):
            asyncio.run(pool.fail(item_id, "error"))


def _claim(pipe: Any, url: str) -> None:
    with sprat.open_store(url) as store:
        pipe.send(asyncio.run(Backends(store).work.pool("papers").claim("w1")).id)


def test_a_late_result_is_logged_as_a_lost_claim(
    url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with sprat.open_store(url) as store:
        store.pool("papers").push({"n": 1})
        item = asyncio.run(Backends(store).work.pool("papers").claim("w1"))
        store.workers.update_status("w1", "lost")
        asyncio.run(Backends(store).work.pool("papers").complete(item.id, "late"))
        assert "its claim was lost" in caplog.text
        assert store.get(item.id).status == "pending"


# -- launching ----------------------------------------------------------------------------------


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which kind of worker was started: the pool's own, or the machine that was asked for."""
    kinds: list[str] = []
    monkeypatch.setattr(checker, "launch", lambda *_: kinds.append("own"))
    monkeypatch.setattr(launching, "start_machines", lambda *_, **__: kinds.append("machine"))
    return kinds


def spawn(store: sprat.Store, wanted: int = 1, **context: object) -> list[str]:
    about = {"pool_id": "papers", "workers_to_spawn": wanted, **context}
    after = asyncio.run(SpratHooks(store)._spawn_workers(about))
    return list(after["spawned_ids"])


PROCESSORS: list[dict[str, Any]] = [
    {"handler": "m:f"},
    {"command": ["true"]},
    {"machine": "job.yml"},
]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda p: next(iter(p)))
def test_a_pool_with_a_processor_of_any_kind_gets_its_own_workers(
    url: str, processor: dict[str, Any], launched: list[str]
) -> None:
    with sprat.open_store(url) as store:
        store.pool("papers").configure(**processor)
        assert len(spawn(store)) == 1
        assert len(spawn(store, worker_config_path="m.yml")) == 1
    assert launched == ["own", "own"]


def test_a_pool_without_a_processor_gets_the_machine_that_was_asked_for(
    url: str, launched: list[str]
) -> None:
    with sprat.open_store(url) as store:
        with pytest.raises(ValueError, match="worker_config_path required"):
            spawn(store)
        assert len(spawn(store, worker_config_path="m.yml")) == 1
    assert launched == ["machine"]


def test_no_worker_is_spawned_right_after_a_failed_launch(url: str, launched: list[str]) -> None:
    with sprat.open_store(url) as store:
        store.pool("papers").configure(handler="m:f")
        checker.give_up(store, spawn(store), "no room")
        assert spawn(store, 3) == []
        [decision] = store.pool("papers").decisions()
        assert decision.reason == "flatmachines asked for 1: 0 workers, at most 10"
