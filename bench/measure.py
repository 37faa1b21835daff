"""What all benchmarks share: measuring children, interleaved rounds, tables, targets."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
QUICK = "--quick" in sys.argv  # a tenth of the work: does it run at all?

Figures = dict[str, Any]


def scaled(n: int) -> int:
    return max(10, n // 10) if QUICK else n


def child(python: str, script: Path, **order: object) -> Figures:
    """Run one measurement in a process of its own, in a fresh directory; what it printed."""
    with tempfile.TemporaryDirectory(prefix="sprat-bench-") as place:
        command = [python, str(script), json.dumps({**order, "place": place})]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)} failed with {done.returncode}")
    figures: Figures = json.loads(done.stdout)
    return figures


def rounds(n: int, contenders: Mapping[str, Callable[[], Figures]]) -> dict[str, Figures]:
    """Measure all contenders n times in turn, so that noise falls on each; medians by name."""
    runs: dict[str, list[Figures]] = {name: [] for name in contenders}
    for number in range(n):
        order = list(contenders)
        for name in order if number % 2 == 0 else reversed(order):
            print(f"  round {number + 1}/{n}: {name}", file=sys.stderr, flush=True)
            runs[name].append(contenders[name]())
    return {name: median(figures) for name, figures in runs.items()}


def median(runs: Sequence[Figures]) -> Figures:
    """Field by field; texts are those of the last run."""
    last = runs[-1]
    return {
        name: statistics.median(run[name] for run in runs)
        if isinstance(value, int | float)
        else value
        for name, value in last.items()
    }


def percentile(values: Sequence[float], percent: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


@dataclass(frozen=True)
class Target:
    """A promise about a ratio of ours to the best other."""

    what: str
    ratio: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        return self.ratio >= self.limit if self.at_least else self.ratio <= self.limit

    def row(self) -> list[str]:
        sign = "at least" if self.at_least else "at most"
        return [
            self.what,
            f"{self.ratio:.2f}",
            f"{sign} {self.limit:g}",
            "met" if self.met else "**missed**",
        ]


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table; numbers on the right."""
    lines = [list(head), *([_cell(value) for value in row] for row in rows)]
    right = [
        len(lines) > 1 and all(_is_number(row[at]) for row in lines[1:]) for at in range(len(head))
    ]
    widths = [max(len(row[at]) for row in lines) for at in range(len(head))]
    rule = [("-" * (w - 1) + ":") if r else "-" * w for w, r in zip(widths, right, strict=True)]
    return "\n".join(
        "| "
        + " | ".join(
            text.rjust(width) if side else text.ljust(width)
            for text, width, side in zip(row, widths, right, strict=True)
        )
        + " |"
        for row in (lines[0], rule, *lines[1:])
    )


def targets(what: str, found: Sequence[Target]) -> str:
    return table([what, "ratio", "target", ""], [one.row() for one in found])


def _cell(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.2f}" if value < 10 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def _is_number(text: str) -> bool:
    return text[:1].isdigit() or text in ("", "-")
