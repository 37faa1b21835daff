"""Jobs that call a service which answers 429 now and then: how much that slows the others.

`python -m bench.throttling`: 2,000 calls of 0.05 to 0.5 s by 20 workers, of which 5 % are refused
with `Retry-After: 1`. Once the error is raised as an HTTP client raises it, once the job raises
`sprat.Transient` itself. With `--quick` a tenth of the calls, printed only.
"""

from __future__ import annotations

import datetime
import os
import sys
import time

from bench import environment
from bench.latency import Fleet, fleet
from bench.measure import QUICK, Figures, Target, rounds, scaled, table, targets
from bench.page import write

CALLS = scaled(2000)
WORKERS = 20
ROUNDS = 2  # in both orders
WAYS = {
    "HTTP error 429, handled by sprat": "service_jobs:call",
    "`raise sprat.Transient(...)`": "service_jobs:call_by_hand",
}
PATIENCE_SECONDS = 900.0
LOOK_SECONDS = 0.05


def run(job: str) -> Figures:
    """Push all calls, wait for the last one, and count."""
    with fleet("noop") as made:
        made.pool.configure(handler=job, max_workers=WORKERS)
        began = time.monotonic()
        made.pool.push_many([{"n": n} for n in range(CALLS)])
        pauses = _until_done(made, began)
        seconds = time.monotonic() - began
        print(f"    {CALLS / seconds:.1f} calls/s", file=sys.stderr, flush=True)
        refused = sum(item.transients for item in made.pool.items(limit=CALLS))
        return {
            "rate": CALLS / seconds,
            "seconds": seconds,
            "refused": refused,
            "processes": len(made.store.workers.list()),
            "decisions": len(made.pool.decisions(limit=1000)),
            "pauses": pauses,
        }


def _until_done(made: Fleet, began: float) -> int:
    """Wait for the last call; the number of looks at which the pool was paused."""
    pauses = 0
    while made.pool.counts().done < CALLS:
        if time.monotonic() > began + PATIENCE_SECONDS:
            raise SystemExit(f"not finished after {PATIENCE_SECONDS:.0f} s: {made.pool.counts()}")
        pauses += made.pool.state().paused
        time.sleep(LOOK_SECONDS)
    return pauses


def section() -> tuple[str, list[Target]]:
    os.environ["SPRAT_LAUNCH_WHEN_SATURATED"] = "1"  # the workers sleep: load is no reason
    found = rounds(ROUNDS, {name: lambda job=job: run(job) for name, job in WAYS.items()})
    automatic, by_hand = found.values()
    kept = [
        Target(
            "calls per second, times those by hand", automatic["rate"] / by_hand["rate"], 0.95, True
        ),
        Target("worker processes, of 20 allowed", automatic["processes"] / WORKERS, 1.0),
    ]
    heads = [
        "way",
        "calls/s",
        "seconds",
        "refused",
        "worker processes",
        "decisions",
        "looks at a pause",
    ]
    rows = [[name, *figures.values()] for name, figures in found.items()]
    return f"{table(heads, rows)}\n\n{targets('with 5 % refused', kept)}", kept


def main() -> None:
    text, _ = section()
    facts = f"{datetime.date.today().isoformat()}, {CALLS:,} calls; {environment.machine()}"
    text = f"- {facts}\n\n{text}"
    print(text)
    if not QUICK:
        write("make bench-throttling", text)


if __name__ == "__main__":
    main()
