"""A decision of the slo policy in words, and the terms that led to it. Pure."""

from __future__ import annotations

import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.core.model import Snapshot
    from sprat.scaling.slo.outlook import Outlook
    from sprat.scaling.slo.queueing import Service

CANNOT_BE_MET = "cannot be met at this cold start"


def reason(view: Outlook, seen: Snapshot, least: int, more: int) -> str:
    fleet = f"{view.line.busy} busy, {view.line.free} idle, {seen.starting} starting"
    if not view.ready:
        said = f"nothing waits, {fleet}"
    else:
        said = (
            f"{view.ready} waiting, the first for {_seconds(view.oldest)}; {fleet}; "
            f"{_job(view.service)}, a start {_seconds(view.cold_start)}: "
            f"{_goal(view, more)}"
        )
    if view.ready and view.coming >= 0.5:
        said = f"{said} ({view.coming:.0f} will come meanwhile)"
    if not view.is_behind:
        kept = f"; {least} are kept for a load of {view.load:.1f}" if least else ""
        return f"{said}{kept}{_verdict(view)}"
    return (
        f"{said}; a wait of {_seconds(view.own.wait_seconds)} cannot be met by launches at this "
        f"cold start of {_seconds(view.cold_start)}, so {least} are kept for a load of "
        f"{view.load:.1f}{view.rise.words()}{_verdict(view)}"
    )


def _verdict(view: Outlook) -> str:
    if view.missed is None:
        return ""
    return (
        f"; {100 * view.missed:.1f} % were late lately, with all that is kept: the load rises "
        f"quicker than workers start, {view.own.percentile:g} % {CANNOT_BE_MET}"
    )


def _job(service: Service) -> str:
    if service.mean == math.inf:
        return "each worker takes one job"
    guess = "" if service.jobs else "perhaps "
    return f"a job takes {guess}{_seconds(service.mean)}"


def _goal(view: Outlook, more: int) -> str:
    own = view.own
    goal = f"to start {own.percentile:g} % within {_seconds(own.wait_seconds)}"
    if own.finish_seconds is not None:
        goal = f"to be done within {_seconds(own.finish_seconds)}"
    if view.is_refused:
        return "those who are idle do not take it, so more would not either"
    return f"{goal} takes {more} more" if more else f"enough {goal}"


def terms(view: Outlook, least: int, more: int) -> dict[str, Any]:
    verdict = {} if view.missed is None else {"verdict": CANNOT_BE_MET}
    return {
        "oldest_seconds": round(view.oldest, 1),
        "service_mean": round(min(view.service.mean, 1e9), 3),
        "service_scv": round(view.service.scv, 2),
        "cold_start": round(view.cold_start, 3),
        "z": round(view.z, 2),
        "for_deadlines": more,
        "floor": least,
        "load": round(view.load, 2),
        "lasting": round(view.loads.lasting, 2),
        "coming": round(view.coming, 1),
        "load_due": round(view.expected_load, 2),
        **verdict,
    }


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 10.0 else f"{value:.2g} s"
