"""A stated target, kept by real processes while nobody looks after them."""

from __future__ import annotations

import os
from pathlib import Path

from fleets import HERE, Fleet

WAIT = 16.0


def test_wait_target_is_kept_by_a_late_launch_that_nobody_asks_for(
    fleet: Fleet, tmp_path: Path
) -> None:
    """Four are at work, and one more item comes: one of the four will probably be free in time, so
    no worker is launched for it. They are not, it grows older, and the fork server, which has no
    other reason to look, launches one before it is late."""
    go = tmp_path / "go"
    target = {"wait_seconds": WAIT, "cold_start_seconds": 4}
    fleet.set(handler="jobs:wait_for_file", policy="slo", policy_options=target)
    fleet.set(min_workers=4, start_on_push=True, isolation="none", idle_seconds=30)
    for _ in range(4):
        fleet.push(file=str(go))
    fleet.until("start", 4)
    fleet.set(min_workers=0)
    item = fleet.push(file=str(tmp_path))
    fleet.until_status(item, "done")
    done = fleet.item(item)
    assert done.claimed_at is not None
    assert 1.0 < done.claimed_at - done.created_at < WAIT
    last = fleet.pool.decisions(limit=1)[0]
    assert (last.policy, last.direction, last.current, last.desired) == ("slo", "up", 4, 5)
    assert "to start 95 % within 16 s takes 1 more" in last.reason
    go.touch()
    fleet.until_done(5)


def test_workers_that_a_target_does_not_need_leave_by_themselves(fleet: Fleet) -> None:
    fleet.set(policy="slo", policy_options={"wait_seconds": 60, "cold_start_seconds": 2})
    fleet.set(start_on_push=True)
    fleet.push()
    fleet.until_done(1)
    fleet.until_gone()


def test_slow_first_start_is_waited_for_before_more_are_launched(
    fleet: Fleet, tmp_path: Path
) -> None:
    """Twenty items come while the code is still being imported, and each makes a pass."""
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    (tmp_path / "slow_import.py").write_text(f"{waits}from jobs import echo\n")
    (tmp_path / "jobs.py").write_text((HERE / "jobs.py").read_text())
    fleet.set(directory=str(tmp_path), handler="slow_import:echo", start_on_push=True)
    fleet.set(policy_options={"wait_seconds": 20}, max_workers=40)
    first = max(2, os.cpu_count() or 1)
    for _ in range(20):
        fleet.push()
        held = fleet.check()
        assert len(fleet.workers()) <= first
    assert held.spawned == 0
    assert "no start has been measured yet" in held.reason
    go.touch()
    fleet.until_done(20)
