"""`sprat simulate`: what policies would have done with a trace, or with a pool's own history."""

from __future__ import annotations

import json
from pathlib import Path

from sprat.cli.arguments import CommandParser, seconds, whole
from sprat.cli.main import DONE, UsageError
from sprat.cli.output import document, duration, number, plain, table, talk
from sprat.cli.target import known_pool, open_existing
from sprat.core.fields import MAX_WORKERS
from sprat.simulation import contenders, recorded, svg, trace_file
from sprat.simulation.policy import POLL_SECONDS
from sprat.simulation.timeline import Timeline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from sprat.cli.arguments import Namespace
    from sprat.simulation.replay import ReplayResult
    from sprat.simulation.trace import Trace

COMPARED = [n for n in ("slo", "queue-depth", "keda", "knative", "oracle") if n in contenders.NAMES]
COLUMNS = ("policy", "cost", "p50", "p95", "p99", "late", "met", "up", "down", "peak")
NOTE = (
    "cost: paid worker-seconds for each useful one; late: started after {target}; "
    "met: at most 5 % late"
)


def parser() -> CommandParser:
    made = CommandParser(prog="sprat simulate")
    made.add_argument(
        "trace", metavar="TRACE", nargs="?", help="a CSV file with arrival_s and service_s"
    )
    made.add_argument("--pool", metavar="POOL", help="instead of a file: the pool's own history")
    made.add_argument(
        "--since", type=seconds, default=7 * 86400.0, metavar="TIME", help="of it; default 7d"
    )
    made.add_argument(
        "--policy", metavar="NAMES", help="whom to compare, with commas; default: ours and others"
    )
    made.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="K=V",
        help="an option of the policy, or POLICY.K=V with several",
    )
    made.add_argument(
        "--cold-start", type=seconds, default=60.0, metavar="TIME", help="of a worker; default 60s"
    )
    made.add_argument(
        "--wait-target",
        type=seconds,
        default=60.0,
        metavar="TIME",
        help="19 of 20 jobs are to start within it; default 60s",
    )
    made.add_argument(
        "--poll",
        type=seconds,
        default=POLL_SECONDS,
        metavar="TIME",
        help="between two passes of our policies; default 5s",
    )
    bound = whole(0, MAX_WORKERS)
    made.add_argument("--min-workers", type=bound, default=0, metavar="N", help="default 0")
    made.add_argument("--max-workers", type=bound, default=1000, metavar="N", help="default 1000")
    made.add_argument("--picture", metavar="FILE", help="draw what happened, as an SVG")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    contestants = [(name, options_of(name, asked)) for name in names_in(asked)]
    conditions = conditions_of(asked)
    target = picture_file(asked.picture)
    trace = trace_of(asked)
    stories = [Timeline(name, trace) for name, _ in contestants]
    outcomes = [
        contenders.run(trace, name, options, conditions, story.watch)
        for (name, options), story in zip(contestants, stories, strict=True)
    ]
    if target is not None:
        drawn = [story for story in stories if story.points]
        title = f"{trace.name}: {number(trace.jobs, 'job')} in {duration(trace.span_seconds)}"
        target.write_text(svg.draw(trace, drawn, title), encoding="utf-8")
        talk(f"drew {target}")
    if asked.json:
        document(
            {"trace": facts_of(trace), "conditions": conditions, "outcomes": plain_of(outcomes)}
        )
    else:
        show(trace, outcomes, conditions)
    return DONE


# -- what was asked for --------------------------------------------------------------------------


def names_in(asked: Namespace) -> list[str]:
    given = COMPARED if asked.policy is None else [n.strip() for n in asked.policy.split(",")]
    names = list(dict.fromkeys(name for name in given if name))
    if not names:
        raise UsageError("--policy names nobody: one or more names, with commas between them")
    return names


def options_of(name: str, asked: Namespace) -> dict[str, Any]:
    """The options of one policy; one that keeps a wait target is told it."""
    options: dict[str, Any] = {}
    if name in ("slo", "predictive"):
        options["wait_seconds"] = asked.wait_target
    names = names_in(asked)
    for text in asked.option:
        key, equals, value = text.partition("=")
        owner, dot, rest = key.partition(".")
        if not equals or not key:
            raise UsageError(f"--option must be K=V or POLICY.K=V, not {text!r}")
        if not dot and len(names) > 1:
            raise UsageError(f"--option {text} is for whom? Write {names[0]}.{text}")
        if dot and owner not in names:
            raise UsageError(f"--option {text} is for {owner}, which is not among --policy")
        if not dot or owner == name:
            options[rest or key] = value_of(value)
    contenders.check(name, options)
    return options


def value_of(text: str) -> object:
    """JSON, or else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def conditions_of(asked: Namespace) -> contenders.Conditions:
    if asked.min_workers > asked.max_workers:
        raise UsageError(
            f"--min-workers {asked.min_workers} is more than --max-workers {asked.max_workers}"
        )
    if not asked.max_workers:
        raise UsageError("--max-workers 0: no job would ever be done")
    if not asked.poll:
        raise UsageError("--poll must be more than 0")
    return contenders.Conditions(
        cold_start_seconds=asked.cold_start,
        wait_target=asked.wait_target,
        poll_seconds=asked.poll,
        min_workers=asked.min_workers,
        max_workers=asked.max_workers,
    )


def picture_file(name: str | None) -> Path | None:
    if name is None:
        return None
    if Path(name).suffix.lower() != ".svg":
        raise UsageError(f"--picture draws SVG: name a file that ends in .svg, not {name}")
    return Path(name)


def trace_of(asked: Namespace) -> Trace:
    if (asked.trace is None) == (asked.pool is None):
        raise UsageError("name a trace file, or a pool with --pool, but not both")
    if asked.trace is not None:
        return trace_file.read(Path(asked.trace))
    with open_existing(asked.url) as store:
        pool = store.pool(known_pool(store, asked.pool))
        return recorded.as_trace(asked.pool, pool.history(asked.since))


# -- what is said about it -----------------------------------------------------------------------


def show(trace: Trace, outcomes: Sequence[ReplayResult], conditions: contenders.Conditions) -> None:
    print(
        f"{trace.name}: {number(trace.jobs, 'job')} in {duration(trace.span_seconds)}, "
        f"{duration(trace.useful_seconds / trace.jobs)} each, "
        f"cold start {duration(conditions.cold_start_seconds)}\n"
    )
    table(COLUMNS, [row_of(outcome) for outcome in outcomes], narrow=0)
    print(f"\n{NOTE.format(target=duration(conditions.wait_target))}")
    for outcome in outcomes:
        if outcome.verdict and not outcome.is_met:
            print(f"{outcome.policy} said at last: {outcome.verdict}")


def row_of(seen: ReplayResult) -> tuple[str, ...]:
    return (
        seen.policy,
        f"{seen.cost:.3f}",
        *(f"{wait:,.0f} s" for wait in (seen.wait_p50, seen.wait_p95, seen.wait_p99)),
        f"{100 * (seen.late_share or 0.0):.1f} %",
        "yes" if seen.is_met else "no",
        str(seen.ups),
        str(seen.downs),
        str(seen.peak_workers),
    )


def facts_of(trace: Trace) -> Mapping[str, object]:
    return {"name": trace.name, "jobs": trace.jobs, "seconds": trace.span_seconds}


def plain_of(outcomes: Sequence[ReplayResult]) -> list[dict[str, object]]:
    return [{**plain(one), "cost": one.cost, "met": one.is_met} for one in outcomes]
