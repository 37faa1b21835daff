"""Figures for Prometheus, by pool, never by worker.

All of them are read from the store at each scrape. Counters are the store's own totals: they count
all work, also that of workers that use the store directly, every server process reports the same
numbers, and a restart does not reset them. A pool has every series, at zero, from the start.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from math import floor

from sprat.core import model
from sprat.core.errors import StoreError
from sprat.core.histogram import edge_of
from sprat.core.reason_labels import REASONS
from sprat.server import desired_replicas
from sprat.store.backend import Backend

log = logging.getLogger("sprat.server")

WINDOW_SECONDS = 300.0  # of percentiles

COUNTERS = {
    "worker_pool_jobs_added_total": "arrivals",
    "worker_pool_jobs_started_total": "starts",
    "worker_pool_jobs_completed_total": "finished",
    "worker_pool_jobs_failed_total": "failed",
}
# name: the fields of the totals that hold its bins and its sum
HISTOGRAMS = {
    "job_wait_time_seconds": ("waits", "wait_seconds"),
    "job_execution_time_seconds": ("runs", "run_seconds"),
}
# Sums of seconds are rounded to milliseconds, at a place between two microseconds: a store may add
# durations up in another order, and a counter that goes down by a digit looks like a restart.
ROUNDING = 0.50025
# Bins at whose upper edge a bucket ends: 1, 4, 16, 64, 250 ms, 1, 4, 15 s, 1, 4, 15 min, 1, 4 h
EDGES = (0, 8, 16, 24, 32, 40, 48, 55, 64, 72, 79, 87, 95)
HELP = {
    "worker_pool_total_workers": "Workers that are starting, active or leaving.",
    "worker_pool_active_workers": "Workers that are working on something.",
    "worker_pool_queue_depth": "Jobs that are ready and wait for a worker.",
    "worker_pool_jobs": "Jobs by state.",
    "worker_pool_paused": "1 while the pool hands out no jobs.",
    "worker_pool_oldest_ready_seconds": "How long the job that was first has been ready.",
    "worker_pool_max_workers": "How many workers the pool may have.",
    "worker_pool_desired_workers": "How many workers the pool's policy wants.",
    "worker_pool_launch_failures": "Launches in a row that never registered.",
    "worker_pool_jobs_added_total": "Jobs that were pushed.",
    "worker_pool_jobs_started_total": "Jobs that were claimed.",
    "worker_pool_jobs_completed_total": "Jobs that were completed.",
    "worker_pool_jobs_failed_total": "Attempts that failed or took their worker with them.",
    "job_wait_time_seconds": "How long jobs had been ready when they were claimed.",
    "job_execution_time_seconds": "How long jobs ran.",
    "job_p95_latency_ms": "The 95th percentile of how long jobs waited, in milliseconds.",
    "job_execution_p95_ms": "The 95th percentile of how long jobs ran, in milliseconds.",
    "autoscaler_scale_up_events_total": "Decisions to start workers.",
    "autoscaler_scale_down_events_total": "Decisions to drain workers.",
    "autoscaler_cooldown_blocks_total": "Decisions to hold that were recorded.",
    "http_requests_total": "Requests that this process answered.",
    "http_request_seconds_total": "Seconds that this process spent on them.",
}

Sample = tuple[str, Mapping[str, str], float]  # name, labels, value


def scrape(backend: Backend) -> list[Sample]:
    """The samples of all pools of this (part of a) store. Blocks. A pool that cannot be read or
    whose policy fails lacks samples; the others have theirs."""
    samples: list[Sample] = []
    for pool in backend.pools():
        try:
            samples.extend(_pool(backend, pool))
        except StoreError:
            raise  # the store does not answer
        except Exception:
            log.exception("figures are missing of pool %s", pool)
    return samples


def _pool(backend: Backend, pool: str) -> Iterator[Sample]:
    seen = backend.observe(pool, None, WINDOW_SECONDS)
    state = backend.pool_state(pool)
    label = {"pool": pool}
    yield "worker_pool_total_workers", label, len(seen.workers)
    yield "worker_pool_active_workers", label, sum(one.claims > 0 for one in seen.workers)
    yield "worker_pool_queue_depth", label, seen.counts.ready
    yield "worker_pool_paused", label, int(seen.paused)
    yield "worker_pool_oldest_ready_seconds", label, seen.oldest_ready_seconds or 0.0
    yield "worker_pool_max_workers", label, state.settings.max_workers
    yield "worker_pool_launch_failures", label, seen.launch_failures
    for status, n in seen.counts.as_dict().items():
        yield "worker_pool_jobs", {**label, "status": status}, n
    yield "job_p95_latency_ms", label, seen.stats.wait_p95 * 1000
    yield "job_execution_p95_ms", label, seen.stats.run_p95 * 1000
    yield from _counters(label, backend.totals(pool))
    yield "worker_pool_desired_workers", label, desired_replicas.of_pool(backend, state).desired


def _counters(label: Mapping[str, str], totals: model.Totals) -> Iterator[Sample]:
    for name, field in COUNTERS.items():
        yield name, label, getattr(totals, field)
    for name, (bins, seconds) in HISTOGRAMS.items():
        yield from _histogram(name, label, dict(getattr(totals, bins)), getattr(totals, seconds))
    decided = {(one.direction, one.reason): one.n for one in totals.decisions}
    for direction in (model.UP, model.DOWN):
        for reason in REASONS:
            name = f"autoscaler_scale_{direction}_events_total"
            yield name, {**label, "reason": reason}, decided.get((direction, reason), 0)
    holds = sum(one.n for one in totals.decisions if one.direction == model.HOLD)
    yield "autoscaler_cooldown_blocks_total", label, holds


def _histogram(
    name: str, label: Mapping[str, str], bins: Mapping[int, int], total: float
) -> Iterator[Sample]:
    for edge in EDGES:
        below = sum(n for number, n in bins.items() if number <= edge)
        yield f"{name}_bucket", {**label, "le": f"{edge_of(edge):g}"}, below
    count = sum(bins.values())
    yield f"{name}_bucket", {**label, "le": "+Inf"}, count
    yield f"{name}_sum", label, floor(total * 1000 + ROUNDING) / 1000
    yield f"{name}_count", label, count


def text(samples: Iterable[Sample]) -> str:
    """Prometheus' text format, each metric's samples together."""
    by_name: dict[str, list[str]] = {name: [] for name in HELP}
    for name, labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
        by_name[_family(name)].append(f"sprat_{name}{{{shown}}} {value:.15g}")
    lines: list[str] = []
    for name, found in by_name.items():
        lines += [f"# HELP sprat_{name} {HELP[name]}", f"# TYPE sprat_{name} {_kind(name)}", *found]
    return "\n".join(lines) + "\n"


def _family(name: str) -> str:
    """The metric that a sample belongs to: a histogram has three kinds of samples."""
    if name in HELP:
        return name
    return name.rpartition("_")[0]


def _kind(name: str) -> str:
    if name in HISTOGRAMS:
        return "histogram"
    return "counter" if name.endswith("_total") else "gauge"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
