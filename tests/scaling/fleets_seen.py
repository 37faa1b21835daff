"""Snapshots to decide on, and what becomes of a fleet when a decision is carried out."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from sprat.core.model import (
    ACTIVE,
    STARTING,
    SUSPENDED,
    TERMINATING,
    Counts,
    Decision,
    PoolSettings,
    Snapshot,
    Stats,
    WorkerRecord,
)

NOW = 1_000_000.0


KINDS = {  # a letter for names, the status, claims and metadata
    "busy": ("b", ACTIVE, 1, {}),
    "idle": ("i", ACTIVE, 0, {}),
    "starting": ("s", STARTING, 0, {}),
    "leaving": ("t", TERMINATING, 1, {}),
    "suspended": ("u", ACTIVE, 0, {SUSPENDED: True}),
}


def fleet(**counts: int) -> Any:
    """Workers b0.., i0.., s0.., t0.., u0..; within a kind the later came later."""
    return tuple(
        WorkerRecord(
            worker_id=f"{letter}{n}",
            status=status,
            claims=claims,
            metadata=metadata,
            started_at=NOW - 100 + n,
        )
        for kind, (letter, status, claims, metadata) in KINDS.items()
        for n in range(counts.get(kind, 0))
    )


def seen(
    ready: int = 0, *, claimed: int | None = None, stats: Any = None, **about: Any
) -> Snapshot:
    workers = fleet(**{kind: about.pop(kind, 0) for kind in KINDS})
    running = sum(w.claims for w in workers)
    return Snapshot(
        pool="papers",
        group=None,
        version=0,
        now=about.pop("now", NOW),
        counts=Counts(pending=ready, claimed=running if claimed is None else claimed),
        workers=workers,
        stats=Stats(seconds=600.0) if stats is None else stats,
        **about,
    )


def pool_settings(policy: str, low: int = 0, high: int = 10, **options: Any) -> PoolSettings:
    return PoolSettings(policy=policy, policy_options=options, min_workers=low, max_workers=high)


def after(before: Snapshot, decision: Decision) -> Snapshot:
    """The snapshot of the same moment, once the decision is recorded."""
    stay = [w for w in before.workers if w.worker_id not in decision.drain]
    leave = [
        w.replace(status=TERMINATING)
        for w in before.workers
        if w.worker_id in decision.drain and w.status == ACTIVE
    ]
    new = [
        WorkerRecord(worker_id=f"n{before.version}-{n}", status=STARTING, started_at=before.now)
        for n in range(decision.launch)
    ]
    times = {"up": "last_up_at", "down": "last_down_at"}
    changes = {times[decision.direction]: before.now} if decision.direction in times else {}
    return before.replace(workers=(*stay, *leave, *new), version=before.version + 1, **changes)


POLICIES = (
    *("slo", "predictive", "queue-depth", "pending-per-worker", "headroom", "step", "latency"),
    "fixed",
)

small = st.integers(0, 15)
moments = st.none() | st.floats(NOW - 1000, NOW)
statistics = st.builds(
    lambda n, wait, run, scv: Stats(
        seconds=600.0,
        starts=n,
        finished=n,
        wait_p95=wait,
        run_mean=run / 2,
        run_p95=run,
        run_scv=scv,
    ),
    *(st.integers(0, 3), st.floats(0, 10), st.floats(0, 10), st.floats(0, 20)),
)
snapshots = st.builds(
    seen,
    st.integers(0, 60),
    busy=small,
    idle=small,
    starting=small,
    leaving=st.integers(0, 3),
    suspended=st.sampled_from([0, 0, 0, 1, 3, 12]),
    paused=st.booleans(),
    last_up_at=moments,
    last_down_at=moments,
    launch_failures=st.sampled_from([0, 0, 0, 1, 5]),
    last_launch_failure_at=moments,
    stats=statistics,
    oldest_ready_seconds=st.floats(0, 300),
)
wait_targets = st.fixed_dictionaries(
    {
        "wait_seconds": st.floats(1, 600),
        "percentile": st.sampled_from([50, 95, 99]),
        "cold_start_seconds": st.sampled_from([2, 40, 100]),
    }
)
option_sets = {
    "slo": wait_targets,
    "predictive": wait_targets,
    "queue-depth": st.just({}),
    "pending-per-worker": st.fixed_dictionaries(
        {
            "target_pending_per_worker": st.floats(0, 20),
            "scale_down_delay_seconds": st.floats(0, 900),
        }
    ),
    "headroom": st.fixed_dictionaries(
        {"headroom_percent": st.floats(0, 300), "scale_down_delay_seconds": st.floats(0, 900)}
    ),
    "step": st.fixed_dictionaries(
        {
            "steps": st.sampled_from(
                [{"0": 0, "1-5": 1, "6-20": 3, "21+": 10}, {"0-5": 1, "6-20": 3}, {"0+": 4}]
            ),
            "scale_down_delay_seconds": st.floats(0, 900),
        }
    ),
    "latency": st.fixed_dictionaries(
        {
            "preset": st.sampled_from(["balanced", "low-latency", "cost-optimized"]),
            "scale_up_step": st.integers(0, 5),
            "scale_down_step": st.integers(0, 5),
            "scale_decision_interval_ms": st.floats(1, 5000),
        }
    ),
    "fixed": st.just({}),
}
bounds = st.tuples(st.integers(0, 12), st.integers(0, 12)).map(sorted)


@st.composite
def choices(draw: st.DrawFn, policies: tuple[str, ...] = POLICIES) -> PoolSettings:
    """A pool's settings with any policy and any good options for it."""
    policy = draw(st.sampled_from(policies))
    low, high = draw(bounds)
    return pool_settings(policy, low, high, **draw(option_sets[policy]))
