"""Launching workers for a machine: reserved in the store first, so never more than the maximum.

A pool with a processor gets workers of sprat, through the pool's launcher. One without gets the
machine that was asked for, in a process of its own with the reserved id as its `worker_id`.
"""

from __future__ import annotations

import os
import sys

from sprat.core import jsontext, model
from sprat.core.record import Record
from sprat.fleet import checker
from sprat.launchers.process.launcher import environment, run_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.store.store import Store

POLICY = "flatmachines"


def reserve(
    store: Store, pool: str, wanted: int, *, max_workers: int | None = None
) -> tuple[str, ...]:
    """Slots for up to `wanted` workers: as many as the pool's maximum (and `max_workers`) allow."""
    settings = store.pool(pool).state().settings
    most = settings.max_workers if max_workers is None else min(settings.max_workers, max_workers)
    for _ in range(checker.TRIES):
        seen = store.pool(pool).observe()
        current = seen.active + seen.starting
        launch = max(0, min(wanted, most - current))
        if not launch:
            return ()
        decision = model.Decision(
            pool=pool,
            policy=POLICY,
            direction="up",
            current=current,
            desired=current + launch,
            reason=f"{wanted} wanted by a machine, {current} of at most {most} are there",
            launch=launch,
            max_workers=most,
            start_deadline_seconds=settings.reservation_seconds,
        )
        recorded = store.pool(pool).record(decision, version=seen.version)
        if recorded is not None:
            return recorded.launched
    return ()


def has_processor(settings: model.PoolSettings) -> bool:
    return settings.handler is not None or settings.command is not None


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
    worker_ids: Sequence[str],
    machine: MachineProcess,
    given: Mapping[str, Any],
) -> None:
    """Start a machine for each reservation and wait for none. A slot that nothing could be started
    for is free again at once."""
    settings = store.pool(pool).state().settings
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
