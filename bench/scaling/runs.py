"""Runs what is to be compared, over two processes, and keeps what others' rules came to.

The results of a setting depend on nothing but the code and the trace, so they are kept in a file
under the machine's temporary directory, named after both, and a second run is quick.
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
from sprat.record import Record
from sprat.simulation import contest
from sprat.simulation.replay import Outcome

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


def run(task: Task) -> tuple[Outcome, float]:
    """The outcome, and the processor time that it took."""
    began = time.process_time()
    conditions = task.setting.conditions(task.cold_start).replace(wait_target=task.wait_target)
    trace = scenarios.load(task.scenario)
    outcome = contest.run(trace, task.setting.policy, task.setting.options, conditions)
    return outcome, time.process_time() - began


def run_all(tasks: Iterable[Task], *, keep: bool) -> dict[str, Outcome]:
    """By key. Kept ones are not run again."""
    wanted = list({task.key: task for task in tasks}.values())
    kept = _kept() if keep else {}
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
                if keep:
                    _keep(kept)
    return {task.key: kept[task.key] for task in wanted}


def _kept() -> dict[str, Outcome]:
    try:
        rows: dict[str, Any] = json.loads(_cache().read_text())
    except (OSError, ValueError):
        return {}
    return {key: Outcome(**values) for key, values in rows.items()}


def _keep(outcomes: dict[str, Outcome]) -> None:
    rows = {key: outcome.as_dict() for key, outcome in outcomes.items()}
    part = _cache().with_suffix(f".{os.getpid()}")
    part.write_text(json.dumps(rows))
    part.replace(_cache())


def _cache() -> Path:
    digest = hashlib.sha256()
    for path in _rules():
        digest.update(path.read_bytes())
    for name in ("synthetic", "fresh", "scenarios"):
        digest.update((Path(__file__).parent / f"{name}.py").read_bytes())
    return Path(tempfile.gettempdir()) / f"sprat-bench-scaling-{digest.hexdigest()[:16]}.json"


def _rules() -> list[Path]:
    """What the rules of the grid are made of; our own policy is run anew every time."""
    scaling = (
        *("sizing", "victims", "brake", "engine", "presets", "options"),
        *("queue_depth", "pending_per_worker", "headroom", "step", "latency"),
    )
    others = SOURCE / "simulation" / "baselines"
    simulation = ("chronicle", "contest", "fleet", "observation", "policy", "replay")
    return [
        *[SOURCE / "scaling" / f"{name}.py" for name in scaling],
        *[SOURCE / "simulation" / f"{name}.py" for name in simulation],
        *[path for path in sorted(others.glob("*.py")) if path.stem != "oracle"],
    ]
