"""Runs what is to be compared, over two processes, and keeps what it came to.

A result depends on nothing but the code and the trace, so it is kept in a file under the machine's
temporary directory, named after both: one for the rules of others, one for ours and the oracle. A
second run is quick, and one that was interrupted goes on.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import sprat
from bench.scaling import scenarios
from bench.scaling.grid import Setting
from sprat.core.record import Record
from sprat.simulation import contenders
from sprat.simulation.replay import ReplayResult

SOURCE = Path(sprat.__file__).parent
PROCESSES = 2


class Task(Record):
    """One setting on one scenario. Without a wait target the outcome holds for every target."""

    scenario: str
    cold_start: float
    wait_target: float | None
    setting: Setting

    @property
    def key(self) -> str:
        return json.dumps(
            [self.scenario, self.cold_start, self.wait_target, self.setting.as_dict()]
        )


def run(task: Task) -> tuple[ReplayResult, float]:
    """The outcome, and the processor time that it took."""
    began = time.process_time()
    conditions = task.setting.conditions(task.cold_start).replace(wait_target=task.wait_target)
    trace = scenarios.load(task.scenario)
    outcome = contenders.run(trace, task.setting.policy, task.setting.options, conditions)
    return outcome, time.process_time() - began


def run_all(tasks: Iterable[Task], cache: Path) -> dict[str, ReplayResult]:
    """By key. Kept ones are not run again."""
    wanted = list({task.key: task for task in tasks}.values())
    kept = _kept(cache)
    left = [task for task in wanted if task.key not in kept]
    spent, shown = 0.0, time.monotonic()
    with ProcessPoolExecutor(PROCESSES) as pool:
        futures = {pool.submit(run, task): task for task in left}
        for done, future in enumerate(as_completed(futures), 1):
            outcome, seconds = future.result()
            kept[futures[future].key] = outcome
            spent += seconds
            if time.monotonic() > shown + 20 or done == len(left):
                shown = time.monotonic()
                print(f"{done} of {len(left)}, {spent:.0f} s of processor", file=sys.stderr)
                _keep(kept, cache)
    return {task.key: kept[task.key] for task in wanted}


def not_kept(tasks: Iterable[Task], cache: Path) -> set[tuple[str, float]]:
    """The scenarios and cold starts of which something has not been run yet."""
    kept = _kept(cache)
    return {(task.scenario, task.cold_start) for task in tasks if task.key not in kept}


def _kept(cache: Path) -> dict[str, ReplayResult]:
    try:
        rows: dict[str, Any] = json.loads(cache.read_text())
    except (OSError, ValueError):
        return {}
    return {key: ReplayResult(**values) for key, values in rows.items()}


def _keep(outcomes: dict[str, ReplayResult], cache: Path) -> None:
    rows = {key: outcome.as_dict() for key, outcome in outcomes.items()}
    part = cache.with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(rows))
    part.replace(cache)


def of_others() -> Path:
    """Where the results of the grid are kept."""
    return _cache("", _rules())


def of_ours() -> Path:
    """Where those of our policy and of the oracle are."""
    return _cache("ours-", [*_rules(), *_python("scaling"), *_python("simulation/baselines")])


def _cache(kind: str, sources: Iterable[Path]) -> Path:
    digest = hashlib.sha256()
    for path in sources:
        digest.update(path.read_bytes())
    for name in ("synthetic", "fresh", "scenarios"):
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    name = f"sprat-bench-scaling-{kind}{digest.hexdigest()[:16]}.json"
    return Path(tempfile.gettempdir()) / name


def _rules() -> list[Path]:
    """What the rules of the grid are made of."""
    scaling = (
        *("sizing", "drain_order", "launch_backoff", "engine", "presets", "options"),
        *("queue_depth", "pending_per_worker", "headroom", "step", "latency"),
    )
    simulation = ("statistics", "contenders", "fleet", "observation", "policy", "replay")
    return [
        *[SOURCE / "scaling" / f"{name}.py" for name in scaling],
        *[SOURCE / "simulation" / f"{name}.py" for name in simulation],
        *[path for path in _python("simulation/baselines") if path.stem != "oracle"],
    ]


def _python(folder: str) -> list[Path]:
    return sorted((SOURCE / folder).rglob("*.py"))
