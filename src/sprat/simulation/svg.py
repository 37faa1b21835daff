"""Draws replays as an SVG: arrivals, backlog and workers over time, a line for each policy.

It is written by hand, so that a picture needs nothing installed. Colours are those that people with
any colour vision can tell apart, on a light or a dark page.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape

from sprat.simulation.timeline import Point, Timeline, arrivals_per_minute
from sprat.simulation.trace import Trace

WIDTH, LEFT, RIGHT = 960, 64, 24
TOP, PANEL, GAP, FOOT = 88, 150, 46, 40
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#7f7f7f")
STYLE = """
  .page { fill: #ffffff } .bar { fill: #b6c2cf }
  .grid { stroke: #d8dee4; stroke-width: 1 }
  .line { fill: none; stroke-width: 1.6; stroke-linejoin: round }
  text { font: 12px system-ui, "DejaVu Sans", sans-serif; fill: #656d76 }
  .title { font-size: 15px; font-weight: 600; fill: #1f2328 }
  .name { font-size: 13px; fill: #1f2328 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .bar { fill: #4d5866 } .grid { stroke: #30363d }
    text { fill: #9198a1 } .title, .name { fill: #e6edf3 }
  }
"""


def draw(trace: Trace, stories: Sequence[Timeline], title: str) -> str:
    """The whole picture, as text."""
    end = max([trace.span_seconds, *(s.points[-1].at for s in stories if s.points), 1.0])
    height = TOP + 3 * PANEL + 2 * GAP + FOOT
    tops = [TOP + n * (PANEL + GAP) for n in range(3)]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(title)}</title><style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text class="title" x="{LEFT}" y="26">{escape(title)}</text>',
        *_legend(stories),
        *_arrivals(trace, tops[0], end),
        *_lines(stories, "jobs waiting", tops[1], end, _waiting),
        *_lines(stories, "workers, starting ones included", tops[2], end, _workers),
        *_time_axis(end, tops),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _waiting(point: Point) -> int:
    return point.waiting


def _workers(point: Point) -> int:
    return point.workers


def _legend(stories: Sequence[Timeline]) -> Iterable[str]:
    x = LEFT
    for place, story in enumerate(stories):
        colour = COLOURS[place % len(COLOURS)]
        yield f'<rect x="{x}" y="39" width="18" height="4" fill="{colour}"/>'
        yield f'<text x="{x + 24}" y="46">{escape(story.name)}</text>'
        x += 44 + 7 * len(story.name)


def _arrivals(trace: Trace, top: float, end: float) -> Iterable[str]:
    rates = arrivals_per_minute(trace)
    high = nice_ceiling(max(rate for _, rate in rates))
    yield from _frame("arrivals a minute", top, high)
    width = max(1.0, _x(rates[1][0], end) - LEFT - 0.5)
    for begin, rate in rates:
        tall = PANEL * rate / high
        yield (
            f'<rect class="bar" x="{_x(begin, end):.1f}" y="{top + PANEL - tall:.1f}" '
            f'width="{width:.1f}" height="{tall:.1f}"/>'
        )


def _lines(
    stories: Sequence[Timeline], name: str, top: float, end: float, of: Callable[[Point], int]
) -> Iterable[str]:
    high = nice_ceiling(max([1, *(of(p) for story in stories for p in story.points)]))
    yield from _frame(name, top, high)
    for place, story in enumerate(stories):
        dots = " ".join(
            f"{_x(p.at, end):.1f},{top + PANEL * (1 - of(p) / high):.1f}" for p in story.points
        )
        yield (f'<polyline class="line" stroke="{COLOURS[place % len(COLOURS)]}" points="{dots}"/>')


def _frame(name: str, top: float, high: float) -> Iterable[str]:
    yield f'<text class="name" x="{LEFT}" y="{top - 8}">{escape(name)}</text>'
    for part in (0.0, 0.5, 1.0):
        y = top + PANEL * (1 - part)
        yield f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>'
        yield f'<text x="{LEFT - 8}" y="{y + 4}" text-anchor="end">{high * part:,.4g}</text>'


def _time_axis(end: float, tops: Sequence[float]) -> Iterable[str]:
    size, unit = next(
        ((s, u) for s, u in ((86400.0, "d"), (3600.0, "h"), (60.0, "min")) if end >= 3 * s),
        (1.0, "s"),
    )
    step = nice_ceiling(end / size / 8)
    y = tops[-1] + PANEL + 20
    for n in range(int(end / size / step) + 1):
        x = _x(n * step * size, end)
        label = f"{n * step:g} {unit}"
        yield f'<text x="{x:.1f}" y="{y}" text-anchor="middle">{label}</text>'


def _x(at: float, end: float) -> float:
    return LEFT + (WIDTH - LEFT - RIGHT) * at / end


def nice_ceiling(value: float) -> float:
    """The next round number that has a round half."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * n for n in (1, 2, 3, 4, 5, 6, 8, 10) if power * n >= value * (1 - 1e-9))
