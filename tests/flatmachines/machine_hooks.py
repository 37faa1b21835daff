"""The hooks of the machines under test: what a user of flatmachines would write."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

from flatmachines import HooksRegistry, MachineHooks

from sprat.flatmachines import processor, registry
from sprat.store.store import Store

Context = dict[str, Any]


class Echo(MachineHooks):
    """The processor: echoes its job, or fails if it is told to."""

    async def on_action(self, state_name: str, action: str, context: Context) -> Context:
        if action == "echo":
            job = context["job"]
            await asyncio.sleep(job.get("seconds", 0))
            if job.get("fail"):
                raise ValueError("no good")
            context["result"] = {"echo": job["n"]}
            if job.get("argv"):
                context["result"]["argv"] = sys.orig_argv
        return context


def hooks(store: Store) -> HooksRegistry:
    made = registry(store, hooks="machine_hooks:hooks")
    made.register("echo", Echo)
    return made


def _only_echo() -> HooksRegistry:
    made = HooksRegistry()
    made.register("echo", Echo)
    return made


# A handler of a sprat pool that is a machine.
analyze = processor(str(Path(__file__).parent / "processor.yml"), _only_echo())
