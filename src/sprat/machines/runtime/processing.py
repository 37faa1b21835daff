"""A machine as the processor of a pool: the item's data is its input, its output the result.

Its position rides on the item: an attempt that was interrupted goes on in the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.machines.definition import Machine
from sprat.machines.library import Library
from sprat.machines.runtime.host import MachineHost
from sprat.machines.stepping import Position, Run
from sprat.store.store import Store
from sprat.worker.job import Job
from sprat.worker.processor import Ended


def processor(settings: PoolSettings) -> Callable[[Job], Any]:
    """Read the machine, and all that it uses, once."""
    library = Library(settings.machines, settings.directory or ".")
    machine = machine_of(settings, library)
    library.read_all(machine)

    def process(job: Job) -> Any:
        def keep(position: Position) -> None:
            if position.steps:
                job.save_checkpoint(position.as_dict())

        room = MachineHost(_store_here, library, keep=keep, pool=job.item.pool)
        run = Run(
            machine,
            room,
            input_of(job.item.data),
            hooks=room.hooks_of(machine),
            position=Position.read(job.checkpoint, machine),
        )
        try:
            return run.run()
        except Exception as error:
            raise Ended(room.outcome_of(error)) from error

    return process


def machine_of(settings: PoolSettings, library: Library) -> Machine:
    """The machine that a pool's settings name."""
    assert settings.machine is not None
    return library.get(settings.machine, directory=settings.directory or os.getcwd())


def input_of(data: Any) -> dict[str, Any]:
    """An item's data as a machine's input: its entries, and all of it as `job`."""
    return {**data, "job": data} if isinstance(data, dict) else {"job": data}


def _store_here() -> Store:
    from sprat.store.open_store import open_store

    url = os.environ.get("SPRAT_URL")
    if not url:
        raise InvalidInput("this machine needs the store: set SPRAT_URL for its worker")
    return open_store(url)
