"""The page that the comparison writes: targets, a table for each sample, a table for each trace."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import sprat
from bench import environment
from bench.scaling import reasons, scenarios
from bench.scaling.grid import MAX_WORKERS, SETTINGS
from bench.scaling.verdict import (
    REGIMES,
    Cell,
    Group,
    Target,
    best_single,
    family,
    groups,
    mean_ratio,
    percent,
    targets,
)

SAMPLES = {
    "Unseen": scenarios.UNSEEN,
    "Fresh hold-out": scenarios.FRESH,
    "Hold-out": scenarios.HOLD_OUT,
    "In-sample": scenarios.IN_SAMPLE,
}
FAMILIES = ("KEDA", "ScaledJob", "Knative", "Dask")
HEAD = """# Scaling, compared

How our `slo` policy sizes a fleet, against the rules of others, replayed over real and synthetic
load by [the simulator](../learn/simulation.md). Ours has one configuration, its default: it is told
the wait target W, and measures the rest. The others have {settings} settings between them, tried
on every scenario.

- Cost: paid worker-seconds for each useful one. A target is met when 95 % of the jobs started
  within W. C is the cold start.
- The envelope: the cheapest of all those settings that meets the target, chosen in hindsight for
  each scenario. Nobody can have that in practice.
- The best single setting of a family: for each C and W, the cheapest of its settings that meets
  the target as often as ours; where none does, of those that meet it most often.
- Means are geometric, over the scenarios where both meet the target. Who pays ten times what an
  oracle does (some hold all {most} workers that are allowed, always) is not in the envelope.
- Beyond: W is below C, and neither ours nor any setting meets it there: it cannot be met at this
  cold start without knowing the future. Said: ours missed the target, and at the end its decisions
  said so in words: *49.0 % were late lately, with all that is kept: the load rises quicker than
  workers start, 95 % cannot be met at this cold start*.
- Each is asked as often as it asks itself: KEDA every 30 s, Dask every second; ours every 5 s and,
  as in a pool with a processor, at a push that no worker is there for, once a second at most. A
  launch takes the cold start and nothing else, so where W is C whoever is asked in the very second
  is just in time: an edge that no real fleet stands on.
- The oracle, in brackets: what somebody who knows all arrivals would pay. Nobody can have less.
- In-sample scenarios were looked at while the policy was made. The hold-out was not, until a first
  version was done; its results were known, and some of it was looked at, when the rule below the
  cold start was changed. The fresh hold-out was made for that: the families of
  [fresh.py](../../bench/scaling/fresh.py) draw every parameter from a seed, and rules are chosen on
  other seeds. What earlier versions came to on it was known when the last rules were chosen (on
  seeds below 10, in-sample, and on hours cut out of both). Some were looked for because of what was
  seen here: one weight, and that a margin is learned in ever smaller steps, because of
  `llnl_thunder_2007_14d`, which was replayed for it, and that a fleet may be calm, because
  `crons-901` was met by one that never changes. That it may be so with a shorter memory too was
  tried on `crons-901` and `spells-906`, then the worst cells, before it was taken. That long jobs
  last until a launch comes was found on six traces, four of them of the hold-out
  (`llnl_thunder_2007_14d`, `slow_steady`, `mooncake_conv_2024`, `azure_llm_conv_2023`), and how
  much an item counts that waits on the third of these; that what was late above the cold start is
  made up for was looked for because `mixture-901` and `mixture-910` were missed. So only one sample
  is clean: the unseen one, two more seeds of the same families and two recorded days. It was run
  when all was done, and once more after a change that `nasa_ipsc_1993_28d`, in-sample, called for
  (targets below the cold start only, where the first run had come to -16.2 % and 27 met).
- Real traces are those of the unseen, the hold-out and in-sample that were recorded somewhere. All
  together is mostly synthetic load: {made} of its {scenarios_run} scenarios.

{scenarios} scenarios, cold starts of {colds}{left_out}. `{command}`, {date}, sprat {version};
{machine}. The traces and their terms: [bench/traces](../../bench/traces/README.md).
"""


OUTSIDE = """
## Load from outside the repository

A policy is fitted to the load that it was made with, whatever is kept aside. So reviewers of the
project ran it on seven recorded traces that are not in the repository, with the same simulator, at
cold starts of 40 and 60 s and W of 30 to 300 s. They ran an earlier version, before the mechanisms
were removed that are named in [decision 0011](../decisions/0011-slo-policy.md). The traces were not
at hand to repeat it with this one.

| W >= 2C: cost of slo against | seven traces | without one of them | the oracle |
|---|---|---|---|
| the best single setting of KEDA | -12.8 % | -9 to -15 % | -15.9 % |
| the best single setting of Knative | -15.0 % | -11 to -17 % | -18.0 % |
| our own queue-depth | -15.3 % | | -18.3 % |
| the envelope | -0.7 % | | -4.3 % |
| wait target met | 28 of 28 | | |

The gain depends on how long jobs run: against KEDA it was 32 % for jobs of half a minute, 15 % at
one minute, 10 % at two, and 1 to 4 % above five. At W = C, 12 of 14 targets were met where
queue-depth met 14: the misses are arrays of many equal jobs that arrive at once. Below the cold
start it cost 3.5 % less than the envelope; where no rule can meet the target, it paid three times
the useful work.
"""


def render(cells: Sequence[Cell], command: str) -> str:
    samples = {
        title: [cell for cell in cells if cell.scenario in some] for title, some in SAMPLES.items()
    }
    names = list(dict.fromkeys(cell.scenario for cell in cells))
    all_names = [name for some in SAMPLES.values() for name in some]
    head = HEAD.format(
        command=command,
        left_out=_left_out(cells, all_names),
        scenarios=f"{len(names)} of {len(all_names)}",
        scenarios_run=len(names),
        made=sum(name not in scenarios.REAL for name in names),
        colds=" and ".join(f"{cold:.0f} s" for cold in sorted({c.cold_start for c in cells})),
        settings=len(SETTINGS),
        most=MAX_WORKERS,
        date=datetime.date.today().isoformat(),
        version=sprat.__version__,
        machine=environment.machine(),
    )
    real = [cell for cell in cells if cell.scenario in scenarios.REAL]
    columns = {**samples, "Real traces": real, "All together": cells}
    parts = [head, "## Targets\n", *_targets(columns), OUTSIDE, *_reasons(columns)]
    for title, some in samples.items():
        if some:
            parts += [f"\n## {title}\n", *_by_target(some)]
    parts += ["\n## Each scenario\n", *_by_scenario(cells)]
    parts += ["\n## Who makes the envelope\n", *_makers(cells)]
    return "\n".join(parts) + "\n"


def _left_out(cells: Sequence[Cell], names: Sequence[str]) -> str:
    """What was not run, in words."""
    run = {(cell.scenario, cell.cold_start) for cell in cells}
    missing = {
        cold: [name for name in names if (name, cold) not in run] for cold in scenarios.COLD_STARTS
    }
    words = [
        f"at {cold:.0f} s {'all' if len(some) == len(names) else ', '.join(some)}"
        for cold, some in missing.items()
        if some
    ]
    return f"\n(not run: {'; '.join(words)})" if words else ""


def _targets(samples: Mapping[str, Sequence[Cell]]) -> Iterable[str]:
    yield f"| target | wanted | {' | '.join(title.lower() for title in samples)} |"
    yield f"|---|---|{'---|' * len(samples)}"
    found = [{target.what: target for target in targets(some)} for some in samples.values()]
    for what in dict.fromkeys(what for some in found for what in some):
        wanted = next(some[what].wanted for some in found if what in some)
        yield f"| {what} | {wanted} | {' | '.join(_reached(some.get(what)) for some in found)} |"


def _reasons(samples: Mapping[str, Sequence[Cell]]) -> Iterable[str]:
    said = reasons.why({t.what for some in samples.values() for t in targets(some) if not t.is_met})
    return ["\n## What is missed, and why\n", *said] if said else []


def _reached(target: Target | None) -> str:
    if target is None:
        return "-"
    return f"{target.reached}: {'met' if target.is_met else '**missed**'}"


def _by_target(cells: Sequence[Cell]) -> Iterable[str]:
    names = " | ".join(f"best {name}" for name in FAMILIES)
    yield f"| C | W | met: ours / best single / any | envelope | {names} | above the oracle |"
    yield f"|---|---|---|---|{'---|' * len(FAMILIES)}---|"
    for (cold, wait), group in groups(cells).items():
        yield f"| {cold:.0f} s | {wait:.0f} s | {' | '.join(_numbers(group))} |"


def _numbers(group: Group) -> list[str]:
    ratios = [r for cell in group.cells if (r := cell.against_envelope) is not None]
    singles = [best_single(group.cells, family(name)) for name in FAMILIES]
    oracle = mean_ratio(c.ours.cost / c.oracle.cost for c in group.cells if c.is_met)
    return [
        f"{group.met} / {group.met_by_best} / {group.met_by_any} of {len(group.cells)}",
        percent(mean_ratio(ratios)),
        *(f"{percent(one.ratio)} ({one.met} met)" for one in singles),
        percent(oracle),
    ]


def _by_scenario(cells: Sequence[Cell]) -> Iterable[str]:
    yield "Cost of ours / of the envelope / of the oracle. An asterisk: the target is missed by"
    yield "ours (then with our 95th percentile) or by every setting.\n"
    waits = sorted({cell.wait_target for cell in cells})
    for cold in sorted({cell.cold_start for cell in cells}):
        yield f"| C = {cold:.0f} s | {' | '.join(f'W = {wait:.0f} s' for wait in waits)} |"
        yield f"|---|{'---|' * len(waits)}"
        for name in dict.fromkeys(cell.scenario for cell in cells if cell.cold_start == cold):
            row = [c for c in cells if (c.scenario, c.cold_start) == (name, cold)]
            title = next(title for title, some in SAMPLES.items() if name in some)
            yield f"| {name} ({title.lower()}) | {' | '.join(_costs(cell) for cell in row)} |"
        yield ""


def _costs(cell: Cell) -> str:
    mine = f"{cell.ours.cost:.3f}"
    if not cell.is_met:
        mine += f"* ({cell.ours.wait_p95:.0f} s)"
    if cell.is_said and cell.regime == REGIMES[2]:
        mine += " said"
    if cell.is_beyond:
        mine += " beyond"
    best = cell.envelope
    return f"{mine} / {f'{best[1].cost:.3f}' if best else '*'} / {cell.oracle.cost:.3f}"


def _makers(cells: Sequence[Cell]) -> Iterable[str]:
    counts = Counter(
        next(s.family for s in SETTINGS if s.label == cell.envelope[0])
        for cell in cells
        if cell.envelope
    )
    yield "| family | scenarios where one of its settings is the cheapest that meets the target |"
    yield "|---|---|"
    for name, n in counts.most_common():
        yield f"| {name} | {n} of {len(cells)} |"
