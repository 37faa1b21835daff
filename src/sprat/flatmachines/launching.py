"""Launching workers for a machine: reserved in the store first, so never more than the maximum.

A pool with a processor gets workers of sprat, through the pool's launcher. One without gets the
machine that was asked for, in a process of its own with the reserved id as its `worker_id`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from sprat.core import jsontext
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.fleet import checker, reservation
from sprat.fleet.decide import Decided
from sprat.launchers.process.launcher import environment, run_apart
from sprat.store.store import Store

POLICY = "flatmachines"


def reserve(
    store: Store, pool: str, settings: PoolSettings, asked: int, *, most: int | None = None
) -> Decided:
    """Reservations for up to this many workers, as the pool's maximum and `most` allow."""
    return reservation.reserve(store, pool, settings, asked, most=most, who=POLICY, policy=POLICY)


class MachineProcess(Record):
    """A machine to start in a process of its own."""

    config: str  # the path of its file
    hooks: str | None = None
    execution_id: str | None = None
    config_directory: str | None = None  # what it names is beside this; else beside its file
    is_ours: bool = False  # the file was written for this start, and goes with it


def start_machines(
    store: Store,
    pool: str,
    settings: PoolSettings,
    worker_ids: Sequence[str],
    *,
    machine: MachineProcess,
    given: Mapping[str, Any],
) -> None:
    """Start a machine for each reservation and wait for none. A slot that nothing could be started
    for is free again at once."""
    fixed = {
        "--config": machine.config,
        "--directory": settings.directory or os.getcwd(),
        "--hooks": machine.hooks,
        "--execution-id": machine.execution_id,
        "--config-directory": machine.config_directory,
    }
    options = [word for name, value in fixed.items() if value for word in (name, value)]
    options += ["--delete-config"] if machine.is_ours else []
    for place, worker_id in enumerate(worker_ids):
        text = jsontext.dumps({**given, "pool_id": pool, "worker_id": worker_id})
        command = [sys.executable, "-P", "-m", "sprat.flatmachines", *options, "--input", "-"]
        try:
            run_apart(command, environment(store.url, settings), text=text)
        except Exception as error:
            checker.give_up(store, worker_ids[place:], f"not launched: {error}")
            raise
