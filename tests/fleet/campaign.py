"""What the campaigns share: fleets of their own, chunks for parallel runs, and the report.

python tests/fleet/campaign.py FILE      prints the table of a report
"""

from __future__ import annotations

import json
import math
import os
import statistics
import sys
import uuid
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SEED = int(os.environ.get("SPRAT_CHAOS_SEED", "5"))
CHUNK = 5  # rounds per test: the unit that parallel test processes share out
HANDLER = "campaign_jobs:run"


def chunks(rounds: int, size: int = CHUNK) -> list[range]:
    return [range(first, min(first + size, rounds)) for first in range(0, rounds, size)]


def name_of(chunk: object) -> str | None:
    return f"{chunk.start}-{chunk.stop - 1}" if isinstance(chunk, range) else None


@contextmanager
def fleet_at(place: Path, url: str) -> Iterator[Any]:
    """A fleet with a marker and a TMPDIR of its own: a kill reaches no other fleet."""
    from fleets import MARKER, Fleet

    place.mkdir(exist_ok=True)
    name = uuid.uuid4().hex
    ours = {MARKER: name, "SPRAT_LOG": str(place / "servers.log"), "TMPDIR": str(place)}
    before = {key: os.environ.get(key) for key in ours}
    os.environ.update(ours)
    fleet = Fleet(place, name, url)
    try:
        yield fleet
    finally:
        fleet.end()
        fleet.close()
        for key, value in before.items():
            if value is None:
                os.environ.pop(key)
            else:
                os.environ[key] = value


def told(place: Path) -> str:
    log = place / "servers.log"
    return log.read_text() if log.exists() else ""


def picture(fleet: Any) -> str:
    """The state of a fleet that did not do what it should."""
    seen = fleet.pool.observe()
    workers = [
        f"{w.worker_id} {w.status} lease {w.lease_until - seen.now:+.2f} heard"
        f" {w.last_heartbeat - seen.now:+.2f} renewals {w.renewals} claims {w.claims} {w.reason}"
        for w in fleet.workers()
    ]
    failures = f"launch failures {seen.launch_failures}, paused {seen.paused}"
    lines = [str(seen.counts), failures, *workers, str(fleet.processes()), told(fleet.place)]
    return "\n  ".join(lines)


def check_results(fleet: Any, pushed: set[str]) -> list[Any]:
    """Every push is done once: the stored result is that of the last claim, and no claim ran
    twice. The items, to see that nothing changes them later."""
    from worlds import all_items, check_counts

    items = all_items(fleet.pool)
    assert {item.id for item in items} == pushed
    assert {item.status for item in items} == {"done"}
    for item in items:
        assert item.result == [item.id, item.epoch], item
    for what in ("start", "end"):
        claims = Counter((item_id, fence) for item_id, fence, *_ in fleet.happened(what))
        assert set(claims.values()) == {1}, f"two {what}s under one claim"
    ended = {(item_id, int(fence)) for item_id, fence in fleet.happened("end")}
    assert {(item.id, item.epoch) for item in items} <= ended
    check_counts(fleet.pool)
    return items


# -- the report -----------------------------------------------------------------------------------


def report(record: dict[str, Any]) -> None:
    """Print one round, and keep it where SPRAT_CHAOS_REPORT says."""
    line = json.dumps(record)
    print(line)
    path = os.environ.get("SPRAT_CHAOS_REPORT")
    if path:
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(file, line.encode() + b"\n")
        os.close(file)


def spread(values: list[float]) -> str:
    if not values:
        return "-"
    ranked = sorted(values)
    p95 = ranked[math.ceil(0.95 * len(ranked)) - 1]
    return f"{statistics.median(ranked):.2f} / {p95:.2f} / {ranked[-1]:.2f}"


def table(records: list[dict[str, Any]]) -> str:
    """One line per kind of round: numbers are added up, lists spread (median / p95 / max)."""
    lines = []
    for kind in sorted({record["kind"] for record in records}):
        mine = [record for record in records if record["kind"] == kind]
        parts = [f"{kind}: {len(mine)} rounds"]
        parts += [
            f"{sum(record[name] for record in mine)} {name[2:].replace('_', ' ')}"
            for name in mine[0]
            if name.startswith("n_")
        ]
        for name in (key for key in mine[0] if key.startswith("s_")):
            values = [record[name] for record in mine if record[name] is not None]
            parts.append(f"{name[2:].replace('_', ' ')} median/p95/max {spread(values)} s")
        lines.append(", ".join(parts))
    return "\n".join(lines)


if __name__ == "__main__":
    text = Path(sys.argv[1]).read_text()
    print(table([json.loads(line) for line in text.splitlines()]))
