"""Which leases start afresh after a gap, as rules without a store."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core.leases import MOST_RENEWALS, LeaseState, after_gap

LEASE = 100.0
MARKED_AT = 1000.0


def lease(until: float, seconds: float = LEASE, renewals: int = 0) -> LeaseState:
    return LeaseState(worker_id="w", seconds=seconds, until=until, renewals=renewals)


def after(gap: float, *leases: LeaseState, restarted: bool = False) -> list[tuple[float, int]]:
    now = MARKED_AT + gap
    changed = after_gap(leases, marked_at=MARKED_AT, now=now, restarted=restarted)
    return [(one.until - now, one.renewals) for one in changed]


@pytest.mark.parametrize(
    ("gap", "until", "changed"),
    [
        (24.0, MARKED_AT + 1, []),  # the store was in use: the lease has ended
        (26.0, MARKED_AT + 1, [(25.0, 1)]),
        (26.0, MARKED_AT + 26, [(25.0, 1)]),
        (26.0, MARKED_AT + 27, []),  # it has not ended yet
        (74.0, MARKED_AT + 1, [(25.0, 1)]),
        (76.0, MARKED_AT + 1, [(100.0, 1)]),
        (76.0, MARKED_AT + 90, [(100.0, 1)]),
        (76.0, MARKED_AT, []),  # it had ended before
        (10_000.0, MARKED_AT + 1, [(100.0, 1)]),
    ],
)
def test_gap_renews(gap: float, until: float, changed: list[tuple[float, int]]) -> None:
    assert after(gap, lease(until)) == changed


def test_new_run_of_the_server_renews_after_any_gap() -> None:
    assert after(1.0, lease(MARKED_AT + 50), restarted=True) == [(100.0, 1)]
    assert after(1.0, lease(MARKED_AT - 1), restarted=True) == []


def test_shortest_lease_decides() -> None:
    assert after(30.0, lease(MARKED_AT + 10), lease(MARKED_AT + 900, 1000.0)) == [(25.0, 1)]
    assert after(76.0, lease(MARKED_AT + 10), lease(MARKED_AT + 900, 1000.0)) == [
        (100.0, 1),
        (1000.0, 1),
    ]


def test_no_lease_is_renewed_for_ever() -> None:
    assert after(1000.0, lease(MARKED_AT + 1, renewals=MOST_RENEWALS)) == []
    assert after(30.0, lease(MARKED_AT + 1, renewals=MOST_RENEWALS)) == []


def test_without_workers_there_is_nothing_to_renew() -> None:
    assert after(1000.0) == []


@given(
    st.lists(
        st.builds(
            lease,
            st.floats(MARKED_AT - 200, MARKED_AT + 2000),
            st.floats(1, 1000),
            st.integers(0, MOST_RENEWALS),
        ),
        max_size=5,
    ),
    st.floats(0, 5000),
    st.booleans(),
)
def test_no_lease_is_ever_shortened(leases: list[LeaseState], gap: float, restarted: bool) -> None:
    named = [one.replace(worker_id=str(place)) for place, one in enumerate(leases)]
    now = MARKED_AT + gap
    for changed in after_gap(named, marked_at=MARKED_AT, now=now, restarted=restarted):
        before = named[int(changed.worker_id)]
        assert before.until > MARKED_AT
        assert changed.until >= max(before.until, now)
        assert changed.renewals == before.renewals + 1 <= MOST_RENEWALS
