"""Workers that never come to work: slots come back, tries are rare, the reason is to be read."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest
from fleets import Fleet, eventually

from sprat.core.model import Decision, WorkerRegistration
from sprat.launchers.process.proxy_requests import begin
from sprat.launchers.process.store_proxy import StoreProxy
from sprat.worker.processor import Outcome
from sprat.worker.worker import Worker

BROKEN = {
    "no such module": ({"handler": "nowhere:run"}, "the handler nowhere:run cannot be imported"),
    "no such function": ({"handler": "good:nothing"}, "the handler good:nothing: good has no"),
    "no such directory": ({"directory": "/nowhere/at/all"}, "the directory /nowhere/at/all: No"),
    "raises": ({"handler": "raises:run"}, "cannot be imported: RuntimeError: not today"),
    "exits": ({"handler": "exits:run"}, "cannot be imported: SystemExit: 3"),
    "no processor": ({"handler": None}, "the pool has no handler"),
}


@pytest.fixture
def broken(fleet: Fleet) -> Fleet:
    """A directory with modules that do not let themselves be imported."""
    (fleet.place / "raises.py").write_text("raise RuntimeError('not today')\n")
    (fleet.place / "exits.py").write_text("import sys\nsys.exit(3)\n")
    (fleet.place / "vanishes.py").write_text("import os\nos._exit(0)\n")
    (fleet.place / "good.py").write_text("def run(data):\n    return 'good'\n")
    fleet.set(directory=str(fleet.place))
    return fleet


@pytest.mark.parametrize(("settings", "why"), BROKEN.values(), ids=list(BROKEN))
def test_slots_come_back_at_once_and_the_reason_is_kept(
    broken: Fleet, settings: dict[str, object], why: str
) -> None:
    broken.set(max_workers=5, **settings)
    for _ in range(5):
        broken.push()
    assert broken.check().spawned == 5
    eventually(lambda: not broken.workers("starting"))
    first = broken.workers()
    assert {w.status for w in first} == {"lost", "terminated"}
    assert all(why in w.reason for w in first)
    again = broken.check()
    assert (again.spawned, again.reason) == (
        0,
        "1 launch in a row did not come to work: the next try is in 1 s",
    )
    broken.may_stay = True  # it tries again by itself


def test_tries_become_rare_and_a_good_handler_recovers_by_itself(broken: Fleet) -> None:
    broken.set(handler="nowhere:run", max_workers=5, start_on_push=True)
    began = time.monotonic()
    fork_servers: set[int] = set()
    ids = []
    while time.monotonic() - began < 3.5:
        ids.append(broken.push())
        fork_servers.update(broken.fork_servers())
        time.sleep(0.05)
    tries = broken.pool.decisions(limit=100)
    assert 2 <= len(tries) <= 3, "after 0, 1 and 3 seconds"
    assert [len(d.launched) for d in tries][:-1] == [1] * (len(tries) - 1)
    assert "trying one" in tries[0].reason
    assert len(fork_servers) <= 10, "not one a push"
    broken.set(handler="good:run")
    broken.until_done(len(ids))
    assert broken.pool.observe().launch_failures == 0


def test_a_handler_that_ends_its_process_at_import_is_tried_again_until_it_is_mended(
    broken: Fleet,
) -> None:
    """Its slots are free at once, and one push is enough."""
    broken.set(handler="vanishes:run", start_on_push=True, start_deadline_seconds=60)
    item = broken.push()
    lost = eventually(lambda: broken.workers("lost"))
    assert "ended" in lost[0].reason
    eventually(lambda: broken.pool.observe().launch_failures >= 2)
    (broken.place / "vanishes.py").write_text("def run(data):\n    return 'mended'\n")
    assert broken.until_status(item, "done").result == "mended"
    assert broken.item(item).attempts == 1


def test_changed_settings_reach_the_workers_that_come_next(broken: Fleet, tmp_path: Path) -> None:
    """The fork server has the old code: it starts another one for the new."""
    broken.set(handler="good:run", max_jobs=1, max_workers=1)
    (broken.place / "better.py").write_text("def run(data):\n    return 'better'\n")
    (broken.place / "waits.py").write_text(
        "import os, time\n"
        "def run(data):\n"
        "    while not os.path.exists('go'): time.sleep(0.01)\n"
        "    return 'old'\n"
    )
    broken.set(handler="waits:run")
    ids = [broken.push() for _ in range(3)]
    broken.check()
    eventually(lambda: broken.pool.counts().claimed == 1)
    broken.set(handler="better:run")
    (broken.place / "go").touch()
    broken.until_done(3)
    assert [broken.item(i).result for i in ids] == ["old", "better", "better"]


def test_a_nest_whose_log_is_gone_says_so_in_one_sentence(
    broken: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It cannot start the next fork server: a directory was deleted with all that was in it."""
    logs = broken.place / "logs"
    logs.mkdir()
    monkeypatch.setenv("SPRAT_LOG", str(logs / "servers.log"))
    broken.set(directory=str(broken.place / "gone"), start_on_push=True)
    broken.push()
    eventually(lambda: broken.workers("lost"))
    with open(logs / "servers.log") as log:
        shutil.rmtree(logs)
        broken.until_gone()
        assert log.read() == (
            f"sprat: SPRAT_LOG: {logs}/servers.log cannot be written: No such file or directory\n"
        )


def test_a_store_that_is_gone_is_complained_about_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proxy = StoreProxy(f"sqlite:///{tmp_path}/gone/fleet.db", "papers")
    assert [proxy.request(begin, []) for _ in range(3)] == [None] * 3
    proxy.stop()
    assert capsys.readouterr().err == (
        f"sprat: the directory of {tmp_path}/gone/fleet.db does not exist: create it first\n"
    )


def test_second_worker_for_a_place_leaves_the_first_alone(fleet: Fleet) -> None:
    fleet.set(max_workers=1)
    fleet.push()
    seen = fleet.pool.observe()
    asked = Decision(
        pool=fleet.pool.name,
        policy="test",
        direction="up",
        current=0,
        desired=1,
        reason="test",
        launch=1,
        max_workers=1,
    )
    recorded = fleet.pool.record(asked, version=seen.version)
    assert recorded is not None
    (worker_id,) = recorded.launched
    first = fleet.store.workers.register(
        WorkerRegistration(worker_id=worker_id, pool_id=fleet.pool.name, host="first", pid=1)
    )
    item = fleet.pool.claim(first)
    assert item is not None
    settings = fleet.pool.state().settings
    second = Worker(
        fleet.store,
        fleet.pool.name,
        lambda _: Outcome(ok=True),
        settings=settings,
        worker_id=worker_id,
        reserved=True,
        metadata={"place": "second"},
    )
    assert second.run().jobs == 0
    assert fleet.store.workers.get(worker_id).status == "active"
    assert fleet.pool.complete(item, "first")
    fleet.store.workers.update_status(first, "terminated")
