"""The settings of others that are tried: a grid for each family, wide enough to find its best."""

from __future__ import annotations

from itertools import product
from typing import Any

from sprat.core.record import Record
from sprat.simulation.contenders import Conditions

POLL_SECONDS = 15.0  # of the rules that leave it to their user
QUIET_SECONDS = 60.0  # ... while nothing happens
MAX_WORKERS = 1000


class Setting(Record):
    """One contestant with its options; `changes` are to the conditions."""

    family: str
    policy: str
    options: dict[str, Any] = {}
    changes: dict[str, Any] = {}

    @property
    def label(self) -> str:
        given = {**self.options, **self.changes}
        hidden = ("poll_seconds", "quiet_seconds", "on_push", "max_replicas")
        words = (f"{name}={value}" for name, value in given.items() if name not in hidden)
        return f"{self.family} {' '.join(words)}".strip()

    def conditions(self, cold_start: float) -> Conditions:
        base = Conditions(cold_start_seconds=cold_start, wait_target=None, max_workers=MAX_WORKERS)
        return base.replace(**self.changes)


def _keda() -> list[Setting]:
    return [
        Setting(
            family="KEDA",
            policy="keda",
            options={
                "target": float(target),
                "counts_running": running,
                "stabilisation_seconds": float(window),
                "cooldown_seconds": float(window or 30),
            },
        )
        for target, running, window in product(
            (1, 1.5, 2, 3, 5, 10, 20), (True, False), (300, 60, 0)
        )
    ]


def _scaled_job() -> list[Setting]:
    return [
        Setting(
            family="ScaledJob",
            policy="scaled-job",
            options={
                "strategy": strategy,
                "polling_seconds": float(polling),
                "one_message": one,
                "max_replicas": MAX_WORKERS,
            },
        )
        for strategy, polling, one in product(
            ("default", "accurate", "eager"), (30, 10, 5), (True, False)
        )
    ]


def _knative() -> list[Setting]:
    return [
        Setting(
            family="Knative",
            policy="knative",
            options={"target": target, "stable_seconds": float(window)},
        )
        for target, window in product((0.5, 0.7, 1.0, 2.0, 4.0), (30, 60, 180))
    ]


def _dask() -> list[Setting]:
    return [
        Setting(
            family="Dask",
            policy="dask",
            options={"target_seconds": float(seconds), "wait_count": count},
        )
        for seconds, count in product((5, 15, 30, 60, 120, 240), (3, 30))
    ]


def _tracking() -> list[Setting]:
    return [
        Setting(
            family="target tracking",
            policy="tracking",
            options={"jobs_per_worker": jobs, "up_minutes": up, "down_minutes": down},
        )
        for jobs, (up, down) in product((0.7, 1.0, 1.5, 2.0, 4.0), ((3, 15), (1, 5)))
    ]


def _ours_of_old() -> list[Setting]:
    """Rules that came with the project's source documents, and simple ones."""
    often = {"poll_seconds": POLL_SECONDS, "quiet_seconds": QUIET_SECONDS, "on_push": False}
    settings = [
        Setting(
            family="pending per worker",
            policy="pending-per-worker",
            options={
                "target_pending_per_worker": float(target),
                "scale_down_delay_seconds": float(delay),
            },
            changes=often,
        )
        for target, delay in product((1, 3, 10), (0, 300))
    ]
    settings += [
        Setting(family="latency", policy="latency", options={"preset": preset}, changes=often)
        for preset in ("low-latency", "high-throughput", "balanced", "cost-optimized")
    ]
    settings += [
        Setting(family="step", policy="step", options=options, changes=often)
        for options in (
            {},
            {
                "steps": {"0": 0, "1-10": 2, "11-50": 10, "51-200": 40, "201+": 150},
                "scale_down_delay_seconds": 60.0,
            },
        )
    ]
    settings += [
        Setting(
            family="headroom",
            policy="headroom",
            options={"headroom_percent": percent, "scale_down_delay_seconds": 60.0},
            changes=often,
        )
        for percent in (0.0, 20.0)
    ]
    settings += [
        Setting(family="queue depth", policy="queue-depth", changes={"idle_seconds": seconds})
        for seconds in (1.0, 30.0)
    ]
    return settings


SETTINGS = [*_keda(), *_scaled_job(), *_knative(), *_dask(), *_tracking(), *_ours_of_old()]
