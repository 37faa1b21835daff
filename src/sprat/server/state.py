"""What one server process holds: the way to the store, and nothing that could not be lost."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

from sprat.config.probe_settings import UNWATCHED
from sprat.core.errors import SpratError
from sprat.server import endpoint_workers, keys, monitor, outbound, quotas
from sprat.server.addresses import AllowList, Forbidden
from sprat.server.http_error import HttpError
from sprat.server.keys import Keyring
from sprat.server.launch_on_push import Arrivals
from sprat.server.long_poll import LongPolls
from sprat.server.metrics import Sample
from sprat.server.options import Options
from sprat.server.outbound import Reached
from sprat.server.scrapes import Scrapes
from sprat.server.tenancy import TenantBackend
from sprat.server.threads import Threads
from sprat.server.worker_secret import Secrets
from sprat.store.backend import Backend

log = logging.getLogger("sprat.server")


class ServerState:
    """Made once for each process; every request sees it."""

    def __init__(self, backend: Backend, options: Options) -> None:
        self.backend = backend
        self.options = options
        self.threads = Threads(options.threads)
        self.under_way = quotas.UnderWay(options.max_connections)
        self.keys = Keyring(backend)
        self.secrets = Secrets(backend)
        self.pools = quotas.KnownPools(backend)
        self.long_polls = LongPolls(backend, self.threads, self.pools)
        self.scrapes = Scrapes()
        self.hosts = AllowList(options.lifecycle.probe_hosts)
        self._has_warned = options.lifecycle.is_in_vain  # at the start
        self.openapi = b""
        self.arrivals: Arrivals | None = None  # starts workers, if we do so
        self.process = f"{socket.gethostname()}:1"  # the host, and which of its server processes
        self.is_ready_until = 0.0  # that the store answered is known for a moment
        self.is_leaving = False  # shutting down: takes no new workers
        self.requests: dict[tuple[str, str, int], int] = {}  # by method, route and status
        self.request_seconds = 0.0
        self._passes: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        if self.options.reap_seconds > 0:
            self._passes.append(asyncio.create_task(self._reap_now_and_then()))
        if self.hosts:
            self._passes.append(asyncio.create_task(self._probe_now_and_then()))

    async def stop(self) -> None:
        self.leave()
        for task in self._passes:
            task.cancel()
        self.threads.close()
        self.scrapes.close()
        if self.arrivals is not None:
            self.arrivals.close()

    def endpoint_came(self) -> None:
        """A worker registered an endpoint. Where none may be probed, the log says so once."""
        if not self.hosts and not self._has_warned:
            self._has_warned = True
            log.warning("a worker registered an endpoint, but %s", UNWATCHED)

    def leave(self) -> None:
        """Begin to shut down: whoever waits goes home, new workers are sent away."""
        self.is_leaving = True
        self.long_polls.close()

    def added(self, pool: str) -> None:
        """Work became ready: whoever waits looks, and workers are started if we do so."""
        self.long_polls.changed(pool)
        if self.arrivals is not None:
            self.arrivals.came(pool)

    def leaving(self) -> HttpError:
        return HttpError(
            503, "shutting_down", "the server is shutting down: try again soon", retry_after=5.0
        )

    def seen(self, route: Any, status: int, seconds: float) -> None:
        """Count one answered request."""
        key = (route.method, route.path, status)
        self.requests[key] = self.requests.get(key, 0) + 1
        self.request_seconds += seconds

    def samples(self) -> list[Sample]:
        """What this process counted itself. The label keeps the processes apart that answer at one
        address: Prometheus would take the numbers of one for those of another."""
        own = {"process": self.process}
        counted: list[Sample] = [
            (
                "http_requests_total",
                {**own, "method": method, "route": path, "status": str(status)},
                n,
            )
            for (method, path, status), n in self.requests.items()
        ]
        return [*counted, ("http_request_seconds_total", own, self.request_seconds)]

    async def _reap_now_and_then(self) -> None:
        """Dead workers are found even when nobody else looks."""
        while True:
            await asyncio.sleep(self.options.reap_seconds)
            try:
                reaped = await self.threads.run(self.backend.reap, None, None)
                for worker_id in reaped.workers:
                    await self.threads.run(self.long_polls.worker_changed, worker_id)
                if reaped.released or reaped.expired:
                    for pool in await self.threads.run(self.backend.pools):
                        await self.threads.run(self.added, pool)
                await self.threads.run(endpoint_workers.end_replaced, self.backend)
            except SpratError as error:
                log.warning("no look for dead workers: %s", error)
            except Exception:
                log.exception("no look for dead workers")

    async def _probe_now_and_then(self) -> None:
        """Watch the workers that have an endpoint, when it is this process's turn."""
        rules = self.options.lifecycle
        while True:
            await asyncio.sleep(rules.health_check_interval)
            try:
                if await self.threads.run(monitor.is_our_turn, self.backend, rules):
                    found = await self.threads.run(parts, self.backend)
                    # Side by side: endpoints of one tenant that do not answer delay no other's.
                    await asyncio.gather(*(self._probe_part(part, skip) for part, skip in found))
            except SpratError as error:
                log.warning("no look at the workers' health: %s", error)
            except Exception:
                log.exception("no look at the workers' health")

    async def _probe_part(self, part: Backend, skip: tuple[str, ...]) -> None:
        """What is wrong in one tenant's part is no reason not to look at the others."""
        try:
            rules = self.options.lifecycle
            most = quotas.MAX_ENDPOINTS if isinstance(part, TenantBackend) else None
            await monitor.tick(part, self.probe, rules, skip=skip, most=most)
        except SpratError:
            raise  # the store does not answer
        except Exception:
            log.exception("no look at the health of the workers in a part of the store")

    async def probe(self, endpoint: str) -> Reached | None:
        """Ask a worker how it is; None when it does not say, or may not be asked."""
        try:
            target = await self.threads.run(self.hosts.target, endpoint, "/health")
        except Forbidden as error:
            log.warning("not probed: %s", error)
            return None
        return await outbound.ask(target, seconds=self.options.lifecycle.health_check_timeout)


def parts(backend: Backend) -> list[tuple[Backend, tuple[str, ...]]]:
    """The parts of a store that have workers of their own, the tenants' and the operator's, and
    how the ids begin that belong to another part."""
    tenants = sorted({key.tenant for key in keys.listed(backend) if key.tenant is not None})
    others = tuple(f"{tenant}." for tenant in tenants)
    return [(backend, others), *((TenantBackend(backend, tenant), ()) for tenant in tenants)]
