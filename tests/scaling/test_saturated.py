"""No launch on a saturated machine, whatever the policy."""

from __future__ import annotations

import pytest
from fleets_seen import POLICIES, pool_settings, seen

from sprat.core.model import Saturation
from sprat.scaling import policies

BUSY = Saturation(cause="CPU pressure 83 %", may_run=2)
SCARCE = Saturation(cause="3 % of the memory is available", may_run=1)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_saturated_machine_gets_no_more_workers(policy: str) -> None:
    settings = pool_settings(policy)
    assert policies.decide(seen(100, busy=2), settings).launch
    decision = policies.decide(seen(100, busy=2, saturated=BUSY), settings)
    assert (decision.direction, decision.launch, decision.desired) == ("hold", 0, 2)
    assert decision.reason.endswith(" wanted, hold: the machine is saturated: CPU pressure 83 %")


def test_first_workers_are_launched_all_the_same() -> None:
    decision = policies.decide(seen(9, saturated=BUSY), pool_settings("queue-depth"))
    assert (decision.direction, decision.launch, decision.desired) == ("up", 2, 2)
    assert decision.reason == "9 wanted, launch 2: the machine is saturated: CPU pressure 83 %"
    assert policies.decide(seen(9, saturated=SCARCE), pool_settings("queue-depth")).launch == 1


def test_first_workers_on_their_way_are_waited_for() -> None:
    before = seen(9, starting=2, saturated=BUSY)
    assert policies.decide(before, pool_settings("queue-depth")).launch == 0


def test_suspended_workers_are_no_reason_to_hold() -> None:
    before = seen(9, suspended=2, saturated=BUSY)
    assert policies.decide(before, pool_settings("queue-depth")).launch == 2


@pytest.mark.parametrize("policy", POLICIES)
def test_a_saturated_machine_is_looked_at_again_while_work_waits(policy: str) -> None:
    settings = pool_settings(policy)
    assert policies.look_again_in(seen(5, busy=5, saturated=BUSY), settings) == 2.0
    assert policies.look_again_in(seen(0, busy=5, saturated=BUSY), settings) is None
