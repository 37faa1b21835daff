"""Our policies by themselves, to compare two versions in minutes: without the rules of others.

`python -m bench.scaling.ours --keep before.json` replays the recorded traces of the repository and
keeps what they came to; `--against before.json`, in another checkout, compares. Arguments name
other scenarios, or files with traces that are not in the repository.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.scaling import scenarios
from bench.scaling.grid import MAX_WORKERS
from bench.scaling.verdict import REGIMES, mean_ratio, percent, regime
from sprat.simulation import contenders
from sprat.simulation.trace import Trace
from sprat.simulation.trace_file import read

Outcomes = Mapping[str, tuple[float, bool]]  # "trace C W" -> cost, and whether the target was met


def main() -> None:
    reader = argparse.ArgumentParser(prog="python -m bench.scaling.ours")
    reader.add_argument("traces", nargs="*", default=scenarios.REAL)
    reader.add_argument("--policy", default="slo")
    reader.add_argument("--keep", type=Path)
    reader.add_argument("--against", type=Path)
    asked = reader.parse_args()
    outcomes = {
        f"{Path(name).name} {cold:g} {wait:g}": run(trace_of(name), asked.policy, cold, wait)
        for name in asked.traces
        for cold in scenarios.COLD_STARTS
        for wait in scenarios.WAIT_TARGETS
    }
    if asked.keep:
        asked.keep.write_text(json.dumps(outcomes, indent=1))
    before = json.loads(asked.against.read_text()) if asked.against else outcomes
    print("\n".join(table(before, outcomes)))


def trace_of(name: str) -> Trace:
    return read(Path(name)) if Path(name).exists() else scenarios.load(name)


def run(trace: Trace, policy: str, cold: float, wait: float) -> tuple[float, bool]:
    conditions = contenders.Conditions(
        cold_start_seconds=cold, wait_target=wait, max_workers=MAX_WORKERS
    )
    outcome = contenders.run(trace, policy, {"wait_seconds": wait}, conditions)
    return outcome.cost, outcome.wait_p95 <= wait


def table(before: Outcomes, after: Outcomes) -> list[str]:
    """How two versions compare, for each regime; costs are means where both meet the target."""
    rows = [
        "| regime | cells | met | cost | change | of single cells |",
        "|---|---|---|---|---|---|",
    ]
    for name in REGIMES:
        cells = [key for key in after if key in before and regime_of(key) == name]
        met = [key for key in cells if before[key][1] and after[key][1]]
        if cells:
            rows.append(
                f"| {name} | {len(cells)} | {' | '.join(_row(before, after, cells, met))} |"
            )
    return rows


def _row(
    before: Outcomes, after: Outcomes, cells: Sequence[str], met: Sequence[str]
) -> tuple[str, ...]:
    ratios = {key: after[key][0] / before[key][0] for key in cells}
    counts = (sum(some[key][1] for key in cells) for some in (before, after))
    costs = [mean_ratio(some[key][0] for key in met) for some in (before, after)]
    return (
        " -> ".join(str(n) for n in counts),
        " -> ".join("-" if cost is None else f"{cost:.3f}" for cost in costs),
        percent(mean_ratio(ratios[key] for key in met)),
        f"{percent(min(ratios.values()))} to {percent(max(ratios.values()))}",
    )


def regime_of(key: str) -> str:
    _, cold, wait = key.rsplit(" ", 2)
    return regime(float(cold), float(wait))


if __name__ == "__main__":
    main()
