"""What a controller can tell about each of its scale sets, for people, probes and Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from sprat.core.model import Snapshot
from sprat.fleet.checker import Checked

HELP = {
    "desired_workers": "Workers that the last decision wants: active and starting ones.",
    "current_workers": "Workers that are active.",
    "terminating_workers": "Workers that finish their job and leave.",
    "pending_jobs": "Jobs that were ready and waited at the last pass.",
    "max_workers": "How many workers there may be.",
    "passes_total": "Scaling passes.",
    "failed_passes_total": "Scaling passes that failed.",
    "last_pass_timestamp_seconds": "When the last pass that did not fail ended.",
    "is_leader": "1 while this controller acts for the scale set, 0 while it watches another.",
    "scaling_decisions_total": "Decisions to start or drain workers.",
    "workers_started_total": "Workers that were launched.",
    "workers_drained_total": "Workers that were told to leave.",
}


class ScaleSetMetrics:
    """Of one scale set. Written by its own thread, read by others."""

    def __init__(self, pool: str, group: str | None) -> None:
        self.pool = pool
        self.group = group
        self.is_leader = False
        self.passes = self.failed = 0
        self.ups = self.downs = self.started = self.drained = 0
        self.desired = self.current = self.terminating = self.pending = self.high = 0
        self.last_pass_at = 0.0  # since 1970, of one that did not fail
        self.well_at: float | None = None  # by the monotonic clock: a pass, or a look at a leader
        self.interval = 0.0  # seconds between two passes
        self.reason = ""
        self.error: str | None = None  # of the last pass, if it failed

    def passed(self, checked: Checked, seen: Snapshot, *, high: int) -> None:
        self.passes += 1
        self.ups += bool(checked.spawned)
        self.downs += bool(checked.drained)
        self.started += checked.spawned
        self.drained += len(checked.drained)
        self.current, self.pending, self.high = seen.active, seen.counts.ready, high
        self.desired = seen.active + seen.starting
        self.terminating = len(seen.workers) - self.desired
        self.reason = checked.reason
        self.last_pass_at = time.time()
        self.well()

    def well(self) -> None:
        self.error = None
        self.well_at = time.monotonic()

    def failed_with(self, error: str) -> None:
        self.failed += 1
        self.error = error

    def is_ready(self, patience: float) -> bool:
        """Whether all went well lately: three passes may be missed, or `patience` seconds."""
        if self.well_at is None:
            return False
        return time.monotonic() - self.well_at <= max(3 * self.interval, patience)

    def samples(self) -> dict[str, float]:
        return {
            "desired_workers": self.desired,
            "current_workers": self.current,
            "terminating_workers": self.terminating,
            "pending_jobs": self.pending,
            "max_workers": self.high,
            "passes_total": self.passes + self.failed,
            "failed_passes_total": self.failed,
            "last_pass_timestamp_seconds": self.last_pass_at,
            "is_leader": int(self.is_leader),
            "workers_started_total": self.started,
            "workers_drained_total": self.drained,
        }

    def as_dict(self) -> dict[str, Any]:
        return {
            "pool": self.pool,
            "group": self.group,
            "leader": self.is_leader,
            "desired": self.desired,
            "current": self.current,
            "reason": self.reason,
            "error": self.error,
        }


def text(all_of_them: Iterable[ScaleSetMetrics]) -> str:
    """Prometheus' text format, each metric's samples together."""
    metrics = sorted(all_of_them, key=lambda one: (one.pool, one.group or ""))
    lines: list[str] = []
    for name, what in HELP.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        full = f"sprat_controller_{name}"
        lines += [f"# HELP {full} {what}", f"# TYPE {full} {kind}"]
        for one in metrics:
            label = f'pool="{_escaped(one.pool)}",group="{_escaped(one.group or "")}"'
            if name == "scaling_decisions_total":
                lines.append(f'{full}{{{label},direction="up"}} {one.ups}')
                lines.append(f'{full}{{{label},direction="down"}} {one.downs}')
            else:
                lines.append(f"{full}{{{label}}} {one.samples()[name]:.15g}")
    return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
