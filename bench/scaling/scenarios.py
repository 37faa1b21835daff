"""The load that policies are compared on: what ours was made with, and what was kept aside."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from bench.scaling import fresh
from bench.scaling.synthetic import (
    DAY,
    HOUR,
    daily,
    flash,
    generate,
    on_off,
    random_on_off,
    steady,
    surge,
    weekdays,
)
from sprat.simulation.trace import Trace
from sprat.simulation.trace_file import read

TRACES = Path(__file__).parent.parent / "traces"
COLD_STARTS = (40.0, 60.0)
WAIT_TARGETS = (30.0, 60.0, 120.0, 300.0)

# Looked at while the policy was made.
IN_SAMPLE = (
    *("azure_llm_code_2023", "lcg_grid_2005_short3d", "nasa_ipsc_1993_28d", "swim_fb2010"),
    *("steady", "daily", "flash_crowd", "on_off"),
)
# Not looked at until the policy was done; other shapes and other seeds.
HOLD_OUT = (
    *("azure_llm_conv_2023", "mooncake_conv_2024", "llnl_thunder_2007_14d", "nasa_http_1995_7d"),
    *("slow_steady", "working_week", "surges", "random_spells"),
)
# Seeds of the families in fresh.py: the policy was made on the first, and on more of the same below
# 10. What earlier versions came to on the fresh ones was known when the last rules were chosen; the
# unseen ones, and two recorded days that were not looked at either, were run once, when all was
# done.
DEVELOPMENT = fresh.named((1, 2, 3))
FRESH = fresh.named((901, 902, 903, 906, 907, 908, 909, 910))
UNSEEN = ("swim_fb2009_0", "swim_fb2009_1", *fresh.named((911, 912)))


@cache
def load(name: str) -> Trace:
    if name in SYNTHETIC:
        return SYNTHETIC[name](name)
    file = _file(name)
    return read(file) if file.exists() else fresh.make(name)


def _file(name: str) -> Path:
    return TRACES / f"{name}.csv.gz"


SYNTHETIC = {
    "steady": lambda name: generate(
        name, 1, seconds=6 * HOUR, rate=steady(0.5), peak=0.5, mean=20.0, sigma=0.8
    ),
    "daily": lambda name: generate(
        name, 2, seconds=3 * DAY, rate=daily(0.02, 0.4), peak=0.4, mean=60.0, sigma=1.0
    ),
    "flash_crowd": lambda name: generate(
        name,
        3,
        seconds=6 * HOUR,
        rate=flash(0.1, 20.0, (1.3 * HOUR, 4.1 * HOUR), 600.0),
        peak=2.0,
        mean=15.0,
        sigma=0.7,
    ),
    "on_off": lambda name: generate(
        name, 4, seconds=12 * HOUR, rate=on_off(1.0, 1200.0, 2400.0), peak=1.0, mean=10.0, sigma=0.5
    ),
    "slow_steady": lambda name: generate(
        name, 11, seconds=24 * HOUR, rate=steady(0.05), peak=0.05, mean=300.0, sigma=1.2
    ),
    "working_week": lambda name: generate(
        name,
        12,
        seconds=7 * DAY,
        rate=weekdays(daily(0.005, 0.25, peaks=2), 0.2),
        peak=0.25,
        mean=30.0,
        sigma=1.3,
    ),
    "surges": lambda name: generate(
        name,
        13,
        seconds=10 * HOUR,
        rate=surge(0.05, 40.0, (1.7 * HOUR, 3.2 * HOUR, 7.9 * HOUR), 400.0),
        peak=2.2,
        mean=8.0,
        sigma=0.3,
    ),
    "random_spells": lambda name: generate(
        name,
        14,
        seconds=24 * HOUR,
        rate=random_on_off(0.4, 900.0, 1800.0, seed=14, seconds=24 * HOUR),
        peak=0.4,
        mean=45.0,
        sigma=1.0,
    ),
}
REAL = tuple(name for name in (*IN_SAMPLE, *HOLD_OUT, *UNSEEN) if _file(name).exists())
