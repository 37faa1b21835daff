"""Figures for Prometheus: the names of seed 004, by pool, never by worker.

Gauges are read from the store at each scrape. Counters go up by what the store's statistics
gained since the last one, so they count all work, also that of workers who use the store directly.
Every series is there at zero from a pool's first scrape on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from threading import Lock

from sprat import model
from sprat.backend import Backend
from sprat.histogram import edge_of
from sprat.orchestrator import wanted

LOOK_BACK_SECONDS = 3600.0  # a scrape more than an hour after the last misses what was before
FINE_SECONDS = 10.0
WINDOW_SECONDS = 300.0  # of percentiles

COUNTERS = {
    "worker_pool_jobs_added_total": "arrivals",
    "worker_pool_jobs_started_total": "starts",
    "worker_pool_jobs_completed_total": "finished",
    "worker_pool_jobs_failed_total": "failed",
}
# name: the fields of a bucket that hold its bins and its sum
HISTOGRAMS = {
    "job_wait_time_seconds": ("waits", "wait_seconds"),
    "job_execution_time_seconds": ("runs", "run_seconds"),
}
# Bins at whose upper edge a bucket ends: 1, 4, 16, 64, 250 ms, 1, 4, 15 s, 1, 4, 15 min, 1, 4 h
EDGES = (0, 8, 16, 24, 32, 40, 48, 55, 64, 72, 79, 87, 95)
REASONS = ("minimum", "maximum", "latency", "idle", "queue", "other")
WORDS = {
    "minimum": ("minimum", "min_workers"),
    "maximum": ("maximum reached", "above"),
    "latency": ("p95", "latency"),
    "idle": ("idle", "delay has passed", "surplus"),
    "queue": ("waiting", "pending", "queue", "ready"),
}
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


class Meter:
    """The counters of one pool, since this process first looked at it."""

    def __init__(self) -> None:
        sums = [field for _, field in HISTOGRAMS.values()]
        self.totals = dict.fromkeys([*COUNTERS.values(), *sums], 0.0)
        self.bins: dict[str, Counter[int]] = {bins: Counter() for bins, _ in HISTOGRAMS.values()}
        self.scaled = {(way, why): 0 for way in ("up", "down") for why in REASONS}
        self.holds = 0
        self._seen: dict[float, model.StatsBucket] | None = None
        self._version: int | None = None

    def add(self, buckets: Iterable[model.StatsBucket]) -> None:
        """Count what these buckets gained since they were last seen."""
        now = {one.at: one for one in buckets if one.seconds == FINE_SECONDS}
        before, self._seen = self._seen, now
        if before is None:
            return  # what was before us is not ours to count
        for at, bucket in now.items():
            known = before.get(at)
            for name in self.totals:
                gain = getattr(bucket, name) - (getattr(known, name) if known else 0)
                self.totals[name] += max(0.0, gain)
            for name, bins in self.bins.items():
                bins.update(dict(getattr(bucket, name)))
                bins.subtract(dict(getattr(known, name)) if known else {})

    def decided(self, decisions: Iterable[model.RecordedDecision], version: int) -> None:
        """Count the decisions that are new."""
        before, self._version = self._version, version
        for one in decisions if before is not None else ():
            if one.version <= (before or 0):
                continue
            if one.direction == "hold":
                self.holds += 1
            else:
                self.scaled[one.direction, reason(one.reason)] += 1


class Metrics:
    """What one process tells Prometheus."""

    def __init__(self) -> None:
        self._meters: dict[str, Meter] = {}
        self._lock = Lock()

    def scrape(self, backend: Backend, front: str) -> list[Sample]:
        """The samples of all pools of this (part of a) store; `front` tells parts apart. Blocks."""
        with self._lock:
            return [
                sample for pool in backend.pools() for sample in self._pool(backend, pool, front)
            ]

    def _pool(self, backend: Backend, pool: str, front: str) -> Iterator[Sample]:
        seen = backend.observe(pool, None, WINDOW_SECONDS)
        meter = self._meters.setdefault(front + pool, Meter())
        meter.add(backend.history(pool, LOOK_BACK_SECONDS))
        meter.decided(backend.decisions(pool, None, 100), seen.version)
        label = {"pool": pool}
        yield "worker_pool_total_workers", label, len(seen.workers)
        yield "worker_pool_active_workers", label, sum(one.claims > 0 for one in seen.workers)
        yield "worker_pool_queue_depth", label, seen.counts.ready
        yield "worker_pool_paused", label, int(seen.paused)
        yield "worker_pool_oldest_ready_seconds", label, seen.oldest_ready_seconds or 0.0
        yield "worker_pool_max_workers", label, backend.pool_state(pool).settings.max_workers
        yield "worker_pool_desired_workers", label, wanted.decision(backend, pool).desired
        yield "worker_pool_launch_failures", label, seen.launch_failures
        for status, n in seen.counts.as_dict().items():
            yield "worker_pool_jobs", {**label, "status": status}, n
        for name, field in COUNTERS.items():
            yield name, label, meter.totals[field]
        for name, (bins, total) in HISTOGRAMS.items():
            yield from _histogram(name, label, meter.bins[bins], meter.totals[total])
        yield "job_p95_latency_ms", label, seen.stats.wait_p95 * 1000
        yield "job_execution_p95_ms", label, seen.stats.run_p95 * 1000
        for (way, why), n in meter.scaled.items():
            yield f"autoscaler_scale_{way}_events_total", {**label, "reason": why}, n
        yield "autoscaler_cooldown_blocks_total", label, meter.holds


def _histogram(
    name: str, label: Mapping[str, str], bins: Mapping[int, int], total: float
) -> Iterator[Sample]:
    for edge in EDGES:
        below = sum(n for number, n in bins.items() if number <= edge)
        yield f"{name}_bucket", {**label, "le": f"{edge_of(edge):g}"}, below
    count = sum(bins.values())
    yield f"{name}_bucket", {**label, "le": "+Inf"}, count
    yield f"{name}_sum", label, total
    yield f"{name}_count", label, count


def reason(text: str) -> str:
    """A decision's reason as one of a few words: sentences make no labels."""
    lowered = text.lower()
    for word, signs in WORDS.items():
        if any(sign in lowered for sign in signs):
            return word
    return "other"


def text(samples: Iterable[Sample]) -> str:
    """Prometheus' text format, each metric's samples together."""
    by_name: dict[str, list[str]] = {name: [] for name in HELP}
    for name, labels, value in samples:
        shown = ",".join(f'{key}="{_escaped(one)}"' for key, one in labels.items())
        by_name[_family(name)].append(f"sprat_{name}{{{shown}}} {value:.12g}")
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
