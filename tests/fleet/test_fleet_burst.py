"""Many short-lived workers, and nothing left of them."""

from __future__ import annotations

import pytest
from fleets import Fleet


@pytest.mark.parametrize("isolation", ["process", "none"])
def test_two_hundred_ephemeral_jobs_leave_nothing_behind(fleet: Fleet, isolation: str) -> None:
    fleet.set(max_jobs=1, max_workers=8, start_on_push=True, isolation=isolation)
    ids = fleet.pool.push_many([fleet.job(say=n) for n in range(200)])
    fleet.until_done(200, within=60)
    fleet.until_gone()
    assert [fleet.item(i).result for i in ids] == list(range(200))
    assert set(fleet.starts().values()) == {1}
    counts = fleet.pool.counts()
    assert (counts.claimed, counts.pending, counts.poisoned) == (0, 0, 0)
    workers = fleet.workers()
    assert {w.status for w in workers} == {"terminated"}
    assert {w.reason for w in workers} <= {"max_jobs", "no_work_available"}
    assert len({fleet.item(i).claimed_by for i in ids}) == 200
