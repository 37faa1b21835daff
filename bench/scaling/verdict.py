"""What the runs mean: the envelope, the best single setting of each family, and the targets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from bench.scaling import grid
from bench.scaling.grid import Setting
from sprat.core.record import Record
from sprat.simulation.replay import ReplayResult

# Who pays so many times what an oracle does has not sized a fleet: some settings hold all the
# workers that are allowed, always, and so meet any target.
WASTE = 10.0
REGIMES = ("W >= 2C", "C <= W < 2C", "W < C")


def regime(cold_start: float, wait_target: float) -> str:
    share = wait_target / cold_start
    return REGIMES[0] if share >= 2 else REGIMES[1] if share >= 1 else REGIMES[2]


class Cell(Record):
    """One scenario at one cold start and one wait target, with everybody's outcome."""

    scenario: str
    cold_start: float
    wait_target: float
    ours: ReplayResult
    oracle: ReplayResult
    others: Mapping[str, ReplayResult]  # by the setting's label

    @property
    def regime(self) -> str:
        return regime(self.cold_start, self.wait_target)

    @property
    def is_met(self) -> bool:
        return meets(self.ours, self.wait_target)

    def is_met_by(self, label: str) -> bool:
        """Whether a setting meets the target, and without waste."""
        seen = self.others[label]
        return meets(seen, self.wait_target) and seen.cost <= WASTE * self.oracle.cost

    @property
    def envelope(self) -> tuple[str, ReplayResult] | None:
        """The cheapest setting that meets the target here, chosen in hindsight."""
        good = [one for one in self.others.items() if self.is_met_by(one[0])]
        return min(good, key=lambda one: one[1].cost) if good else None

    @property
    def against_envelope(self) -> float | None:
        """Our cost over the envelope's, where both meet the target."""
        best = self.envelope
        return self.ours.cost / best[1].cost if best and self.is_met else None

    @property
    def is_said(self) -> bool:
        """Whether ours misses the target, and said that it cannot be met at this cold start."""
        return not self.is_met and self.ours.verdict is not None

    @property
    def is_beyond(self) -> bool:
        """Whether the target is below the cold start, and neither ours nor any setting meets it."""
        return self.regime == REGIMES[2] and self.envelope is None and not self.is_met


def meets(outcome: ReplayResult, wait_target: float) -> bool:
    return outcome.wait_p95 <= wait_target


class Single(Record):
    """The best single setting of a family for one cold start and wait target."""

    label: str
    met: int
    ratio: float | None  # our cost over its, where both meet the target
    oracle: float | None  # the oracle's over its, there


def best_single(cells: Sequence[Cell], settings: Iterable[Setting]) -> Single:
    """The cheapest of those that meet the target as often as we do; where none does, of those that
    meet it most often."""
    met = {
        one.label: sum(meets(cell.others[one.label], cell.wait_target) for cell in cells)
        for one in settings
    }
    enough = min(max(met.values()), max(1, sum(cell.is_met for cell in cells)))
    good = [label for label, n in met.items() if n >= enough]
    label = min(good, key=lambda one: mean_ratio(cell.others[one].cost for cell in cells) or 0.0)
    both = [c for c in cells if c.is_met and meets(c.others[label], c.wait_target)]
    return Single(
        label=label,
        met=met[label],
        ratio=mean_ratio(cell.ours.cost / cell.others[label].cost for cell in both),
        oracle=mean_ratio(cell.oracle.cost / cell.others[label].cost for cell in both),
    )


def family(name: str) -> list[Setting]:
    return [one for one in grid.SETTINGS if one.family == name]


def mean_ratio(ratios: Iterable[float]) -> float | None:
    """The geometric mean."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


class Group(Record):
    """Cells that are judged together, all of one cold start and wait target."""

    cells: Sequence[Cell]

    @property
    def met(self) -> int:
        return sum(cell.is_met for cell in self.cells)

    @property
    def met_by_any(self) -> int:
        return sum(cell.envelope is not None for cell in self.cells)

    @property
    def met_by_best(self) -> int:
        """By the single setting that meets the target most often."""
        labels = [one.label for one in grid.SETTINGS]
        return max(sum(cell.is_met_by(label) for cell in self.cells) for label in labels)


def groups(cells: Iterable[Cell]) -> dict[tuple[float, float], Group]:
    """By cold start and wait target."""
    found: dict[tuple[float, float], list[Cell]] = {}
    for cell in cells:
        found.setdefault((cell.cold_start, cell.wait_target), []).append(cell)
    return {key: Group(cells=some) for key, some in sorted(found.items())}


class Target(Record):
    """One target of ours, and whether it is met."""

    what: str
    wanted: str
    reached: str
    is_met: bool


def targets(cells: Sequence[Cell]) -> list[Target]:
    return [*_slack(cells), *_middle(cells), *_tight(cells)]


def _slack(cells: Sequence[Cell]) -> list[Target]:
    mine = [cell for cell in cells if cell.regime == REGIMES[0]]
    if not mine:
        return []
    share = sum(cell.is_met for cell in mine) / len(mine)
    made = [
        Target(
            what="W >= 2C: wait target met",
            wanted="95 % of scenarios",
            reached=f"{share:.0%} of {len(mine)}",
            is_met=share >= 0.95,
        ),
        _envelope("W >= 2C: cost against the envelope", mine, 0.01),
    ]
    for name in ("KEDA", "Knative"):
        singles = [best_single(g.cells, family(name)) for g in groups(mine).values()]
        mean = mean_ratio(one.ratio for one in singles if one.ratio is not None)
        oracle = mean_ratio(one.oracle for one in singles if one.oracle is not None)
        made.append(
            Target(
                what=f"W >= 2C: cost against the best single setting of {name}",
                wanted="-15 % or less",
                reached=f"{percent(mean)} (oracle {percent(oracle)})",
                is_met=mean is not None and mean <= 0.85,
            )
        )
    return made


def _middle(cells: Sequence[Cell]) -> list[Target]:
    mine = [cell for cell in cells if cell.regime == REGIMES[1]]
    if not mine:
        return []
    met = sum(group.met for group in groups(mine).values())
    best = sum(group.met_by_best for group in groups(mine).values())
    return [
        _envelope("C <= W < 2C: cost against the envelope", mine, 0.03),
        Target(
            what="C <= W < 2C: wait target met",
            wanted="as often as the best baseline",
            reached=f"{met}, the best baseline {best}, of {len(mine)}",
            is_met=met >= best,
        ),
    ]


def _tight(cells: Sequence[Cell]) -> list[Target]:
    """Cells that are beyond everybody count apart."""
    mine = [cell for cell in cells if cell.regime == REGIMES[2]]
    if not mine:
        return []
    within = [cell for cell in mine if not cell.is_beyond]
    met, by_any = sum(cell.is_met for cell in within), Group(cells=within).met_by_any
    ratios = [r for cell in mine if (r := cell.against_envelope) is not None]
    worst = max(ratios, default=None)
    return [
        _envelope("W < C: cost against the envelope", mine, -0.10),
        Target(
            what="W < C: the worst scenario",
            wanted="+10 % or less",
            reached=percent(worst),
            is_met=worst is not None and worst <= 1.10,
        ),
        Target(
            what="W < C: wait target met",
            wanted="as often as the envelope",
            reached=f"{met}, envelope {by_any} of {len(within)}; {len(mine) - len(within)} beyond",
            is_met=met >= by_any,
        ),
        _met_or_said(mine),
    ]


def _met_or_said(cells: Sequence[Cell]) -> Target:
    met, said = sum(cell.is_met for cell in cells), sum(cell.is_said for cell in cells)
    return Target(
        what="W < C: met, or the verdict that it cannot be met at this cold start",
        wanted="all scenarios",
        reached=f"{met} met, {said} said so, of {len(cells)}",
        is_met=met + said == len(cells),
    )


def _envelope(what: str, cells: Sequence[Cell], most: float) -> Target:
    both = [(c, best[1]) for c in cells if c.is_met and (best := c.envelope)]
    mean = mean_ratio(cell.ours.cost / best.cost for cell, best in both)
    oracle = mean_ratio(cell.oracle.cost / best.cost for cell, best in both)
    return Target(
        what=what,
        wanted=f"{100 * most:+.0f} % or less",
        reached=f"{percent(mean)} (over {len(both)}; oracle {percent(oracle)})",
        is_met=mean is not None and mean <= 1.0 + most,
    )


def percent(ratio: float | None) -> str:
    return "-" if ratio is None else f"{100 * (ratio - 1):+.1f} %"
