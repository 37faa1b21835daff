"""flatmachines: its distributed worker, a process for each job. Runs in an environment with it.

`push FILE N` stores N jobs; `work FILE WORKER` registers, claims one, completes it and leaves.
"""

from __future__ import annotations

import asyncio
import logging
import sys
from typing import Any

from flatmachines import FlatMachine, HooksRegistry
from flatmachines.distributed import SQLiteRegistrationBackend
from flatmachines.distributed_hooks import DistributedWorkerHooks
from flatmachines.work import SQLiteWorkBackend


def action(name: str, then: str) -> dict[str, Any]:
    return {"hooks": "bench", "action": name, "transitions": [{"to": then}]}


MACHINE = {
    "spec": "flatmachine",
    "spec_version": "4.2.0",
    "data": {
        "name": "worker",
        "context": {"pool_id": "bench", "worker_id": "{{ input.worker_id }}"},
        "states": {
            "start": {"type": "initial", "transitions": [{"to": "register"}]},
            "register": action("register_worker", "claim"),
            "claim": action("claim_job", "process"),
            "process": action("noop", "complete"),
            "complete": action("complete_job", "leave"),
            "leave": action("deregister_worker", "done"),
            "done": {"type": "final", "output": {"job_id": "{{ context.job_id }}"}},
        },
    },
}


class Hooks(DistributedWorkerHooks):
    async def on_action(self, state_name: str, action: str, context: Any) -> Any:
        if action == "noop":
            return {**context, "result": None}
        return await super().on_action(state_name, action, context)


async def push(path: str, n: int) -> None:
    pool = SQLiteWorkBackend(path).pool("bench")
    for number in range(n):
        await pool.push({"n": number})


def work(path: str, worker_id: str) -> None:
    hooks = HooksRegistry()
    registration, items = SQLiteRegistrationBackend(path), SQLiteWorkBackend(path)
    hooks.register("bench", lambda: Hooks(registration=registration, work=items))
    machine = FlatMachine(config_dict=MACHINE, hooks_registry=hooks)
    answer = asyncio.run(machine.execute(input={"worker_id": worker_id}))
    assert answer["job_id"], "no job was claimed"


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    verb, path, argument = sys.argv[1:]
    if verb == "push":
        asyncio.run(push(path, int(argument)))
    else:
        work(path, argument)
