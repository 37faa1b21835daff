"""The lease: one of many has it, over every store, and it ends by the store's clock."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from processes import Together, at_once
from worlds import World

from sprat.controller.lease import ControllerLease
from sprat.core.model import PoolSettings
from sprat.fleet import controller_lease
from sprat.store.open_store import open_store
from sprat.store.store import Store

Advance = Callable[[float], None]
SECONDS = 15.0


def lease(store: Store, holder: str, name: str = "papers/gpu") -> ControllerLease:
    return ControllerLease(store.backend, name, holder=holder, seconds=SECONDS)


def told() -> dict[str, object]:
    settings = PoolSettings(policy="fixed", max_workers=3)
    return {
        "group": "gpu",
        "settings": {name: getattr(settings, name) for name in controller_lease.SCALING},
    }


def test_one_has_it_and_may_renew_it(store: Store) -> None:
    first, second = lease(store, "a"), lease(store, "b")
    assert first.hold(told)
    assert first.is_held
    assert not second.hold(told)
    assert not second.is_held
    assert first.hold(told)
    assert lease(store, "b", "papers/cpu").hold(told), "another scale set is another lease"


def test_it_ends_unless_it_is_renewed(store: Store, advance: Advance) -> None:
    first, second = lease(store, "a"), lease(store, "b")
    first.hold(told)
    advance(SECONDS / 2)
    assert first.hold(told)
    advance(SECONDS - 1)
    assert not second.hold(told)
    advance(2)
    assert second.hold(told)
    assert not first.hold(told), "who comes back too late has lost it"
    assert not first.is_held


def test_who_gives_it_up_lets_another_have_it_at_once(store: Store) -> None:
    first, second = lease(store, "a"), lease(store, "b")
    first.hold(told)
    second.give_up()
    assert not second.hold(told), "one cannot give up what another has"
    first.give_up()
    assert not first.is_held
    assert second.hold(told)


def test_a_lease_counts_from_before_it_was_asked_for(store: Store) -> None:
    now = [100.0]
    backend = store.backend
    held = ControllerLease(backend, "papers", holder="a", seconds=SECONDS, clock=lambda: now[0])

    def slowly() -> dict[str, object]:
        now[0] += 10.0
        return told()

    assert held.hold(slowly)
    now[0] += 4.9
    assert held.is_held
    now[0] += 0.2
    assert not held.is_held


def test_what_is_told_is_in_force_while_it_lasts(store: Store, advance: Advance) -> None:
    backend, own = store.backend, PoolSettings(handler="jobs:run")
    assert controller_lease.in_force(backend, "papers", "gpu", own) is None
    assert not controller_lease.is_led(backend, "papers")
    lease(store, "a").hold(told)
    lease(store, "a", "papers").hold(told)
    found = controller_lease.in_force(backend, "papers", "gpu", own)
    assert found is not None
    assert (found.handler, found.policy, found.max_workers) == ("jobs:run", "fixed", 3)
    assert controller_lease.is_led(backend, "papers")
    assert controller_lease.in_force(backend, "papers", None, own) is None, "it is the group's"
    advance(SECONDS + 1)
    assert controller_lease.in_force(backend, "papers", "gpu", own) is None
    assert not controller_lease.is_led(backend, "papers")


class Forgetful:
    """A backend whose answer to a put is lost once: the put is sent again, and is too late."""

    def __init__(self, store: Store) -> None:
        self._backend = store.backend
        self.document = store.backend.document

    def put(self, *asked: object) -> bool:
        self._backend.put(*asked)  # type: ignore[arg-type]
        return self._backend.put(*asked)  # type: ignore[arg-type]


def test_a_lost_answer_is_not_a_lost_lease(store: Store) -> None:
    held = ControllerLease(Forgetful(store), "papers", holder="a", seconds=SECONDS)  # type: ignore[arg-type]
    assert held.hold(told)
    assert held.is_held


def take(place: int, together: Together, url: str) -> bool:
    with open_store(url) as store:
        ours = lease(store, f"process {place}")
        together()
        return ours.hold(told)


@pytest.mark.parametrize("round_", range(3))
def test_of_many_at_once_one_gets_it(shared: World, tmp_path: Path, round_: int) -> None:
    assert sum(at_once(8, take, shared.url)) == 1
