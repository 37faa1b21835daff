"""`sprat work --seat`: a process that takes one place after the other, like a Deployment's pod."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator

import pytest
from fleets import POOL, Fleet, eventually

from sprat.core.model import LIVE
from sprat.fleet import checker
from sprat.fleet.launcher import Launcher


class Nobody(Launcher):
    """Starts nobody: those who sit here already take the places."""

    def launch(self, *_: object) -> None:
        pass


class Chair:
    def __init__(self, fleet: Fleet, name: str) -> None:
        self.file = fleet.place / name
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sprat", "work", POOL, "--seat", str(self.file)],
            env={**os.environ, "SPRAT_URL": fleet.url, "SPRAT_PLACE": name},
        )
        eventually(lambda: self.waits)

    @property
    def is_taken(self) -> bool:
        return self.file.exists() and self.file.read_text() == "seated\n"

    @property
    def waits(self) -> bool:
        return self.file.exists() and self.file.read_text() == ""

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(30)


@pytest.fixture
def chairs(fleet: Fleet) -> Iterator[list[Chair]]:
    made = [Chair(fleet, name) for name in ("a", "b")]
    yield made
    for chair in made:
        chair.process.kill()
        chair.process.wait()


def check(fleet: Fleet) -> checker.Checked:
    return checker.check(fleet.store, POOL, launcher=Nobody())


def test_without_a_place_nobody_works(fleet: Fleet, chairs: list[Chair]) -> None:
    fleet.push()
    assert not fleet.workers()
    assert fleet.pool.size() == 1
    assert [chair.stop() for chair in chairs] == [0, 0]


def test_places_are_taken_once_each_and_again_later(fleet: Fleet, chairs: list[Chair]) -> None:
    for size in (2, 4):
        fleet.push(seconds=0.5)
        fleet.push(seconds=0.5)
        assert check(fleet).spawned == 2
        fleet.until_done(size)
        eventually(lambda: not fleet.workers(*LIVE))
        assert all(chair.waits for chair in chairs)
    assert {worker.status for worker in fleet.workers()} == {"terminated"}
    assert len(fleet.workers()) == 4
    assert {worker.host for worker in fleet.workers()} <= {"a", "b"}
    assert set(fleet.starts().values()) == {1}
    assert all(chair.process.poll() is None for chair in chairs)


def test_drained_worker_stays_without_a_place(fleet: Fleet, chairs: list[Chair]) -> None:
    fleet.set(min_workers=2)
    check(fleet)
    eventually(lambda: all(chair.is_taken for chair in chairs))
    fleet.set(min_workers=0)
    for worker in fleet.workers("active"):
        fleet.store.workers.update_status(worker, "terminating")
    eventually(lambda: all(chair.waits for chair in chairs))
    assert all(chair.process.poll() is None for chair in chairs)


def test_signal_lets_the_job_end_first(fleet: Fleet, chairs: list[Chair]) -> None:
    item_id = fleet.push(seconds=1.0)
    check(fleet)
    fleet.until("start")
    (busy,) = [chair for chair in chairs if chair.is_taken]
    assert busy.stop() == 0
    assert fleet.item(item_id).status == "done"
    assert fleet.item(item_id).attempts == 1


def test_process_that_is_started_again_frees_what_its_former_self_held(
    fleet: Fleet, chairs: list[Chair]
) -> None:
    fleet.set(heartbeat_seconds=300.0)  # no lease ends in this test
    item_id = fleet.push(seconds=3600)
    check(fleet)
    fleet.until("start")
    (busy,) = [chair for chair in chairs if chair.is_taken]
    busy.process.kill()
    busy.process.wait()
    again = Chair(fleet, busy.file.name)
    chairs.append(again)
    fleet.until_status(item_id, "pending")
    (lost,) = fleet.workers("lost")
    assert lost.reason == "its container was started again"
    fleet.pool.cancel(item_id)


def test_place_of_a_group_is_for_those_who_are_in_it(fleet: Fleet, chairs: list[Chair]) -> None:
    item_id = fleet.pool.push(fleet.job(), group="gpu")
    assert checker.check(fleet.store, POOL, launcher=Nobody(), group="gpu").spawned == 1
    grouped = subprocess.Popen(
        [
            *(sys.executable, "-m", "sprat", "work", POOL, "--group", "gpu"),
            *("--seat", str(fleet.place / "c")),
        ],
        env={**os.environ, "SPRAT_URL": fleet.url, "SPRAT_PLACE": "c"},
    )
    try:
        fleet.until_status(item_id, "done")
        assert [worker.host for worker in fleet.workers()] == ["c"]
    finally:
        grouped.kill()
        grouped.wait()


def test_seat_is_for_any_place(fleet: Fleet) -> None:
    said = subprocess.run(
        [sys.executable, "-m", "sprat", "work", POOL, "--seat", "x", "--worker-id", "w"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "SPRAT_URL": fleet.url},
    )
    assert said.returncode == 2
    assert "leave --worker-id and --serve out" in said.stderr
