"""flatmachines' invoker over a store: `launch` of a worker reserves its slot first."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import tempfile
from typing import Any

from flatmachines.actions import InlineInvoker

from sprat.flatmachines import launching
from sprat.fleet import checker
from sprat.store.store import Store

log = logging.getLogger("sprat")


class SpratInvoker(InlineInvoker):
    """What a machine invokes and waits for runs inline, as usual. What it launches into a pool
    (its input names `pool_id`) is a worker: it is launched if there is a slot for it."""

    def __init__(self, store: Store, *, hooks: str | None = None) -> None:
        super().__init__()
        self._store = store
        self._hooks = hooks  # "module:function" that makes a HooksRegistry for a store

    async def launch(
        self, caller_machine: Any, target_config: Any, input_data: Any, execution_id: str
    ) -> None:
        pool = input_data.get("pool_id") if isinstance(input_data, dict) else None
        if not isinstance(pool, str):
            await super().launch(caller_machine, target_config, input_data, execution_id)
            return
        machine = launching.MachineProcess(
            config=_written(target_config),
            hooks=self._hooks,
            execution_id=execution_id,
            config_directory=str(caller_machine._config_dir or os.getcwd()),
            is_ours=True,
        )
        await asyncio.to_thread(self._launch, pool, machine, input_data)

    def _launch(self, pool: str, machine: launching.MachineProcess, given: Any) -> None:
        settings = self._store.pool(pool).state().settings
        reserved = launching.reserve(self._store, pool, settings, 1)
        if reserved.launched and not settings.has_processor:
            launching.start_machines(
                self._store, pool, settings, reserved.launched, machine=machine, given=given
            )
            return
        os.unlink(machine.config)
        if reserved.launched:
            checker.launch(self._store, pool, settings, reserved.launched)
        else:
            log.info("no worker was launched into %s: %s", pool, reserved.reason)


def _written(config: Any) -> str:
    """The machine in a file of its own, which the runner deletes."""
    descriptor, path = tempfile.mkstemp(prefix="sprat-machine-", suffix=".json")
    with os.fdopen(descriptor, "w") as file:
        json.dump(config, file)
    return path
