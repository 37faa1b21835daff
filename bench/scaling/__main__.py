"""Runs the comparison and writes docs/benchmarks/scaling.md.

`python -m bench.scaling`; `--quick` takes the short scenarios at one cold start, `--kept` runs
nothing and takes those that have been run before, `--print` leaves the page as it is.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.scaling import page, runs, scenarios
from bench.scaling.grid import MAX_WORKERS, SETTINGS, Setting
from bench.scaling.verdict import Cell
from sprat.simulation import contenders

PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "scaling.md"
QUICK = (
    *("azure_llm_code_2023", "steady", "flash_crowd", "on_off"),
    *("azure_llm_conv_2023", "mooncake_conv_2024", "slow_steady", "surges", "random_spells"),
    *scenarios.FRESH,
    *scenarios.UNSEEN,
)
POLICY = "slo"

Places = Sequence[tuple[str, float]]  # scenarios, each at a cold start
ORACLE = Setting(family="oracle", policy=contenders.ORACLE)


def ours(wait_target: float) -> Setting:
    """Our policy as it comes: told what the user wants, and nothing else."""
    return Setting(family="ours", policy=POLICY, options={"wait_seconds": wait_target})


def main() -> None:
    if POLICY not in contenders.NAMES:
        raise SystemExit(f"there is no policy {POLICY} yet")
    reader = argparse.ArgumentParser(prog="python -m bench.scaling")
    reader.add_argument("--quick", action="store_true")
    reader.add_argument("--kept", action="store_true")
    reader.add_argument("--print", action="store_true")
    asked = reader.parse_args()
    began = time.monotonic()
    names = QUICK if asked.quick else [name for some in page.SAMPLES.values() for name in some]
    colds = scenarios.COLD_STARTS[:1] if asked.quick else scenarios.COLD_STARTS
    places = [(name, cold) for name in names for cold in colds]
    if asked.kept:
        missing = runs.not_kept(of_others(places).values(), runs.of_others())
        missing |= runs.not_kept(of_ours(places).values(), runs.of_ours())
        places = [place for place in places if place not in missing]
    given = sys.argv[1:]
    command = " ".join(["python -m bench.scaling", *given]) if given else "make bench-scaling"
    text = page.render(cells(places), command)
    if asked.print:
        print(text)
    else:
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
        print(f"wrote {PAGE}")
    print(f"took {time.monotonic() - began:.0f} s; {MAX_WORKERS} workers at most", file=sys.stderr)


def of_others(places: Places) -> dict[tuple[str, float, str], runs.Task]:
    return {(n, c, s.label): task(n, c, None, s) for n, c in places for s in SETTINGS}


def of_ours(places: Places) -> dict[tuple[str, float, float, str], runs.Task]:
    return {
        (n, c, w, s.family): task(n, c, w, s)
        for n, c in places
        for w in scenarios.WAIT_TARGETS
        for s in (ours(w), ORACLE)
    }


def cells(places: Places) -> list[Cell]:
    fixed, told = of_others(places), of_ours(places)
    found = runs.run_all(fixed.values(), runs.of_others())
    found |= runs.run_all(told.values(), runs.of_ours())
    return [
        Cell(
            scenario=n,
            cold_start=c,
            wait_target=w,
            ours=found[told[n, c, w, "ours"].key],
            oracle=found[told[n, c, w, "oracle"].key],
            others={s.label: found[fixed[n, c, s.label].key] for s in SETTINGS},
        )
        for n, c in places
        for w in scenarios.WAIT_TARGETS
    ]


def task(name: str, cold: float, wait: float | None, setting: Setting) -> runs.Task:
    return runs.Task(scenario=name, cold_start=cold, wait_target=wait, setting=setting)


if __name__ == "__main__":
    main()
