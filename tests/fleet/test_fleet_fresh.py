"""Where a fork is not safe, workers are fresh processes, and everything else is the same."""

from __future__ import annotations

import os
from pathlib import Path

from fleets import Fleet, eventually, is_alive, kill, parent_of

THREADED = """
import os, threading, time
threading.Thread(name="theirs", target=threading.Event().wait, daemon=True).start()

def work(data):
    time.sleep(data["seconds"])
    return [thread.name for thread in threading.enumerate()]
"""


def test_code_with_threads_is_imported_by_each_worker_itself(fleet: Fleet, tmp_path: Path) -> None:
    use_threaded_code(fleet, tmp_path)
    ids = fleet.pool.push_many([{"seconds": 0.0}] * 6)
    fleet.until_done(6)
    assert all("theirs" in fleet.item(i).result for i in ids)  # a fork would have lost it


def test_fresh_worker_that_is_killed_is_replaced_at_once(fleet: Fleet, tmp_path: Path) -> None:
    use_threaded_code(fleet, tmp_path)
    item_id = fleet.pool.push({"seconds": 1.0})
    victim = fleet.worker_of(item_id)
    assert victim.pid is not None
    assert parent_of(victim.pid) in fleet.fork_servers()
    kill(victim.pid)
    eventually(lambda: not is_alive(victim.pid or 0))
    done = fleet.until_status(item_id, "done")
    assert done.attempts == 2
    assert done.claimed_by != victim.worker_id


def use_threaded_code(fleet: Fleet, place: Path) -> None:
    code = place / "code"
    code.mkdir()
    (code / "threaded.py").write_text(THREADED)
    fleet.set(
        handler="threaded:work",
        directory=os.fspath(code),
        isolation="none",
        start_on_push=True,
        max_workers=2,
    )
