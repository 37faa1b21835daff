"""In-process pools, one a region, behind one door: each job goes to the pool of its region."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from typing import Any

from sprat.core.errors import InvalidInput
from sprat.local.worker_pool import Job, WorkerPool, WorkerStats


class RegionalPool:
    """Routes jobs, and sets all pools to what `scaling.regions.spread` gave each."""

    def __init__(self, pools: Iterable[WorkerPool]) -> None:
        self._pools: dict[str, WorkerPool] = {}
        for pool in pools:
            if pool.region is None or pool.region in self._pools:
                raise InvalidInput(f"each pool needs a region of its own, not {pool.region!r}")
            self._pools[pool.region] = pool
        if not self._pools:
            raise InvalidInput("there are no pools to route to")

    def submit_job(self, job: Job) -> Future[Any]:
        """To the pool of its region; without one, to the pool with the least work to a worker."""
        return self._pool(job).submit_job(job)

    def scale_to(self, workers: Mapping[str, int]) -> None:
        """Set every region that is named; a region without workers keeps its jobs waiting."""
        for region in workers:
            self._known(region)
        for region, n in workers.items():
            self._pools[region].scale_to(n)

    def get_stats(self) -> dict[str, WorkerStats]:
        return {region: pool.get_stats() for region, pool in self._pools.items()}

    def shutdown(self, timeout_s: float | None = None) -> bool:
        """Drain all; whether all ended in time."""
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(len(self._pools)) as side_by_side:
            ended = list(side_by_side.map(lambda p: p.shutdown(timeout_s), self._pools.values()))
        return all(ended)

    def _pool(self, job: Job) -> WorkerPool:
        if job.region is not None:
            return self._known(job.region)
        return min(self._pools.values(), key=_load)

    def _known(self, region: str) -> WorkerPool:
        if region not in self._pools:
            raise InvalidInput(f"there is no region {region!r}: one of {', '.join(self._pools)}")
        return self._pools[region]


def _load(pool: WorkerPool) -> tuple[bool, float]:
    stats = pool.get_stats()
    jobs = stats.queue_depth + stats.in_flight_jobs
    return stats.total_workers == 0, jobs / max(1, stats.total_workers)
