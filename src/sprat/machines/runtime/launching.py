"""`launch` in a machine: starts machines elsewhere and does not wait for them.

Whatever a template asks for, reservations are made in the store first, as for a scaling decision:
starting and active workers of a pool never exceed its maximum, nor `max_workers` of the machine
that launches. Each launched machine is a worker of its pool, under the id of its reservation.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from sprat.core import jsontext
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.fleet import checker, reservation
from sprat.fleet.decide import Decided
from sprat.machines.definition import Machine
from sprat.machines.library import Library
from sprat.store.store import Store

POLICY = "machine"
MAX_ORDER_BYTES = 100_000  # it travels in the environment of a process


class Launched(Record):
    """The workers that were started of as many as a machine asked for, and why not all."""

    asked: int
    ids: tuple[str, ...]
    reason: str

    def plus(self, asked: int, ids: Sequence[str], reason: str) -> Launched:
        """These and more. Why a pool got fewer than asked for is kept, once."""
        reasons = [self.reason] if self.reason else []
        if len(ids) < asked and reason not in reasons:
            reasons.append(reason)
        return Launched(asked=self.asked + asked, ids=(*self.ids, *ids), reason="; ".join(reasons))

    def as_output(self) -> dict[str, Any]:
        return {
            "execution_ids": list(self.ids),
            "launched": len(self.ids),
            "asked": self.asked,
            "reason": self.reason,
        }


NOTHING = Launched(asked=0, ids=(), reason="")


def reserve(
    store: Store, pool: str, settings: PoolSettings, asked: int, *, most: int | None, who: str
) -> Decided:
    """Record the decision to launch as many as asked for and allowed; the reserved ids."""
    if settings.launcher != "process":
        raise InvalidInput(
            f"pool {pool} has the launcher {settings.launcher}: machines launch only processes"
        )
    return reservation.reserve(store, pool, settings, asked, most=most, who=who, policy=POLICY)


def launch(
    store: Store,
    library: Library,
    machine: Machine,
    wanted: Sequence[tuple[str, Any]],
    *,
    most: int | None,
    who: str,
) -> Launched:
    """Launch a machine once for each pool and input, as far as its pool allows."""
    if not machine.path:
        raise InvalidInput(f"{machine.name} has no file: a machine that is launched needs one")
    done = NOTHING
    for pool in dict.fromkeys(pool for pool, _ in wanted):
        inputs = [given for name, given in wanted if name == pool]
        settings = store.pool(pool).state().settings
        reserved = reserve(store, pool, settings, len(inputs), most=most, who=who)
        for text, group in _by_input(reserved.launched, inputs).items():
            _start(store, pool, settings, group, order(machine, text, library, most))
        done = done.plus(len(inputs), reserved.launched, reserved.reason)
    return done


def order(machine: Machine, given: str, library: Library, most: int | None) -> str:
    """What a fork server runs: a file, its input, and what names are bound to."""
    text = jsontext.dumps(
        {
            "machine": os.path.abspath(machine.path),
            "input": jsontext.loads(given),
            "bound": library.bound,
            "max_workers": most,
        }
    )
    if len(text.encode()) > MAX_ORDER_BYTES:
        raise InvalidInput(f"launch_input is too large: {MAX_ORDER_BYTES:,} bytes; push it instead")
    return text


def _by_input(ids: Sequence[str], inputs: Sequence[Any]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = {}
    for worker_id, given in zip(ids, inputs, strict=False):
        groups.setdefault(jsontext.dumps(given), []).append(worker_id)
    return groups


def _start(store: Store, pool: str, settings: PoolSettings, ids: Sequence[str], what: str) -> None:
    from sprat.launchers.process.launcher import MachineLauncher

    checker.launch(store, pool, settings, tuple(ids), MachineLauncher(what))


def limit_of(values: Mapping[str, Any], more: Mapping[str, Any]) -> int | None:
    """What the launching machine itself says: `max_workers` of its context and of its input."""
    said = [one.get("max_workers") for one in (values, more)]
    known = [n for n in said if isinstance(n, int) and not isinstance(n, bool) and n >= 0]
    return min(known) if known else None
