"""flatmachines' actions for distributed workers, over a store.

A worker that registers here gives signs of life beside its job, from a thread: a long state is not
taken for a dead worker. A checker counts the workers of its own pool, those that are starting too,
and what it spawns is reserved first.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from typing import Any

from flatmachines import DistributedWorkerHooks, HooksRegistry
from flatmachines.distributed import WorkerRegistration

from sprat.core import model
from sprat.core.errors import SpratError
from sprat.flatmachines import launching
from sprat.flatmachines.backends import LEASE_SECONDS, Backends, record_of
from sprat.fleet import checker
from sprat.store.store import Store
from sprat.worker.membership import Membership

Context = dict[str, Any]


class SpratHooks(DistributedWorkerHooks):
    """Extend it as you would extend DistributedWorkerHooks."""

    def __init__(
        self, store: Store, *, hooks: str | None = None, lease_seconds: float = LEASE_SECONDS
    ) -> None:
        self._backends = Backends(store, lease_seconds=lease_seconds)
        super().__init__(registration=self._backends.registration, work=self._backends.work)
        self.store = store
        self._spec = hooks  # "module:function", for machines that are started from here
        self._pulses: dict[str, threading.Event] = {}

    async def _get_pool_state(self, context: Context) -> Context:
        seen = await asyncio.to_thread(self.store.pool(_pool(context)).observe)
        context["queue_depth"] = seen.counts.ready
        context["active_workers"] = seen.active + seen.starting
        return context

    async def _register_worker(self, context: Context) -> Context:
        worker_id = context.get("worker_id")
        if not worker_id:
            raise ValueError("worker_id is required for register_worker")
        about = WorkerRegistration(
            worker_id=worker_id,
            host=socket.gethostname(),
            pid=os.getpid(),
            capabilities=context.get("capabilities", []),
        )
        join = self._backends.registration.join
        member = await asyncio.to_thread(join, about, _pool(context))
        record = record_of(member.me)
        context.update(
            worker_id=record.worker_id, status=record.status, registered_at=record.started_at
        )
        if member.status == model.ACTIVE:
            self._begin_pulse(member)
        return context

    async def _deregister_worker(self, context: Context) -> Context:
        self._end_pulse(context.get("worker_id"))
        done: Context = await super()._deregister_worker(context)
        return done

    async def _fail_job(self, context: Context) -> Context:
        """The error is where flatmachines leaves it, unless the machine put it somewhere."""
        if context.get("error") is None:
            context["error"] = context.get("last_error")
        done: Context = await super()._fail_job(context)
        return done

    async def _spawn_workers(self, context: Context) -> Context:
        """Start what the checker wants, as far as the pool's maximum allows."""
        pool, wanted = _pool(context), int(context.get("workers_to_spawn", 0))
        most = context.get("max_workers")
        spawned = await asyncio.to_thread(
            self._spawn, pool, wanted, None if most is None else int(most), context
        )
        context["spawned_ids"] = list(spawned)
        context["spawned_count"] = len(spawned)
        return context

    def _spawn(self, pool: str, wanted: int, most: int | None, context: Context) -> tuple[str, ...]:
        settings = self.store.pool(pool).state().settings
        config = context.get("worker_config_path")
        is_ours = settings.has_processor
        if wanted > 0 and not is_ours and not config:
            raise ValueError("worker_config_path required in context for spawn_workers")
        ids = launching.reserve(self.store, pool, settings, wanted, most=most).launched
        if ids and is_ours:
            checker.launch(self.store, pool, settings, ids)
        elif ids:
            path = os.path.abspath(str(config))
            machine = launching.MachineProcess(config=path, hooks=self._spec)
            launching.start_machines(self.store, pool, settings, ids, machine=machine, given={})
        return ids

    # -- signs of life ----------------------------------------------------------------------

    def _begin_pulse(self, member: Membership) -> None:
        worker_id = member.me.worker_id
        self._end_pulse(worker_id)
        over = self._pulses[worker_id] = threading.Event()
        threading.Thread(target=_pulse, args=(member, over), daemon=True).start()

    def _end_pulse(self, worker_id: str | None) -> None:
        over = self._pulses.pop(worker_id or "", None)
        if over is not None:
            over.set()


def _pulse(member: Membership, over: threading.Event) -> None:
    while member.status not in model.ENDED and not over.wait(member.until_due()):
        try:
            member.heartbeat()
        except SpratError:
            pass  # the store cannot be reached now: it is tried again soon


class _Registry(HooksRegistry):
    """Names that are not registered mean the standard actions."""

    def __init__(self, store: Store, hooks: str | None) -> None:
        super().__init__()
        self._standard = SpratHooks(store, hooks=hooks)

    def _resolve_single(self, ref: Any) -> Any:
        name = ref if isinstance(ref, str) else ref.get("name")
        return super()._resolve_single(ref) if self.has(name) else self._standard


def registry(store: Store, *, hooks: str | None = None) -> HooksRegistry:
    """For `FlatMachine(hooks_registry=)`: register your own hooks in it; all other names that a
    machine mentions get the standard actions over this store."""
    return _Registry(store, hooks)


def _pool(context: Context) -> str:
    return str(context.get("pool_id", "default"))
