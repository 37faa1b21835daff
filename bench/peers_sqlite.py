"""sprat against other queues on SQLite, at equal durability.

`python -m bench.peers_sqlite`: CPU per no-op job, bulk push, and how soon an idle waiter in
another process has a pushed item. Each queue runs in processes of its own, in turn.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial

from bench import environment
from bench.measure import (
    HERE,
    Figures,
    Target,
    child,
    percentile,
    rounds,
    scaled,
    table,
    targets,
)

OURS = "sprat"
FLOOR = "floor"
ROUNDS = 5
IDLE_SECONDS = 4.0
PUSHES = 120
GAP_SECONDS = (0.04, 0.11)  # between the pushes to one queue and to the next

FUSED, APART, BATCHED = "one", "claim, then complete", "batched"
RESULT, ROW = "one with a result", "row"
LABELS = {
    (OURS, FUSED): "sprat, one at a time: exchange(settlements=[last], claim=1)",
    (OURS, RESULT): "sprat, the same, with a result kept",
    (OURS, APART): "sprat, claim() then complete()",
    (OURS, BATCHED): "sprat, 100 at a time: exchange(100 settlements, claim=100)",
    (FLOOR, FUSED): "the floor: the statements of that exchange, bare, through apsw",
    (FLOOR, ROW): "the least: one row changed and committed, bare, through apsw",
    ("huey", FUSED): "Huey, dequeue() and execute(), nothing kept",
    ("huey", RESULT): "Huey, the same, with a result kept",
    ("litequeue", FUSED): "litequeue, pop() and done()",
    ("persistqueue", FUSED): "persist-queue SQLiteAckQueue, get() and ack()",
}


# Equal durability includes the job itself: Huey deletes a task when it hands it out, so that a
# worker which is killed loses it. And a setting counts as documented when the queue offers it.
KEEPS_WHAT_IS_CLAIMED = {"litequeue", "persistqueue"}
DOCUMENTED = {("litequeue", False), ("persistqueue", True), ("huey", False), ("huey", True)}


def _python(queue: str) -> str:
    return sys.executable if queue in (OURS, FLOOR) else environment.python()


def _measure(queue: str, **order: object) -> Figures:
    return child(_python(queue), HERE / "queues" / f"{queue}_queue.py", **order)


# -- jobs -----------------------------------------------------------------------------------


def jobs(synced: bool) -> tuple[str, list[Target]]:
    """CPU and rate of taking and settling no-op jobs through the store."""
    one = scaled(150 if synced else 2000)
    contenders = {
        key: partial(
            _measure,
            key[0],
            do="jobs",
            way=key[1],
            synced=synced,
            n=scaled(10_000) // 100 * 100 if key[1] == BATCHED else one,
        )
        for key in LABELS
    }
    found = rounds(ROUNDS, {LABELS[key]: measure for key, measure in contenders.items()})
    best = min(found[LABELS[key]]["cpu_us"] for key in LABELS if key[0] not in (OURS, FLOOR))
    rows = [
        [name, one["cpu_us"], one["cpu_us"] / best, one["per_second"], one["settings"]]
        for name, one in found.items()
    ]
    head = ["take and settle a job", "CPU us", "of best other", "jobs/s", "settings"]
    how = "every commit synced" if synced else "claims survive a process crash"
    safe = min(
        found[LABELS[key]]["cpu_us"]
        for key in LABELS
        if key[0] in KEEPS_WHAT_IS_CLAIMED and (key[0], synced) in DOCUMENTED
    )
    kept = [
        Target(f"CPU, {what}, {how}, {whom}", found[LABELS[OURS, way]]["cpu_us"] / cost, limit)
        for what, way, limit in (("one at a time", FUSED, 0.5), ("100 at a time", BATCHED, 0.25))
        for whom, cost in (("as safe, as documented", safe), ("any", best))
    ]
    floor = found[LABELS[FLOOR, FUSED]]["cpu_us"]
    ours = found[LABELS[OURS, FUSED]]["cpu_us"]
    told = (
        f"One at a time, ours is {ours / floor:.2f} of the floor, and the floor is "
        f"{floor / best:.2f} of the best other: what these statements cost through this driver "
        f"with no library around them. One changed row and one commit, and nothing else, are "
        f"{found[LABELS[FLOOR, ROW]]['cpu_us'] / best:.2f} of it."
    )
    return f"{table(head, rows)}\n\n{told}", kept


# -- bulk push ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bulk:
    """One way to push many; `slow` ones sync every item, so fewer are pushed."""

    name: str
    queue: str
    synced: bool | None
    how: str = ""
    documented: bool = True
    slow: bool = False

    @property
    def n(self) -> int:
        return scaled(300 if self.slow else 10_000)

    def measure(self) -> Figures:
        return _measure(self.queue, do="bulk", how=self.how, n=self.n, synced=self.synced)


OUR_BULK = Bulk("sprat, push_many()", OURS, None)
BULK = [
    Bulk("litequeue, put() loop", "litequeue", True, how="put loop", slow=True),
    Bulk("Huey, enqueue() loop", "huey", True, slow=True),
    Bulk("persist-queue, put() loop", "persistqueue", True, slow=True),
    Bulk("litequeue, in its transaction()", "litequeue", True, documented=False),
    Bulk("litequeue, put() loop, unsynced", "litequeue", False, how="put loop"),
    Bulk("Huey, enqueue() loop, unsynced", "huey", False),
    Bulk("persist-queue, put() loop, unsynced", "persistqueue", False),
    Bulk("litequeue, in its transaction(), unsynced", "litequeue", False, documented=False),
]


def bulk() -> tuple[str, list[Target]]:
    """Items pushed per second. Ours are on the disk when push_many returns."""
    ways = [OUR_BULK, *BULK]
    found = rounds(ROUNDS, {way.name: way.measure for way in ways})
    rate = {name: one["per_second"] for name, one in found.items()}
    ours = rate[OUR_BULK.name]
    rows = [
        [way.name, way.n, one["cpu_us"], rate[way.name], ours / rate[way.name], one["settings"]]
        for way, one in zip(ways, found.values(), strict=True)
    ]
    head = ["push many", "items", "CPU us each", "items/s", "ours is faster by", "settings"]
    rivals = {
        "documented ways, every push synced as ours": [
            way for way in BULK if way.synced and way.documented
        ],
        "documented ways, synced or not": [way for way in BULK if way.documented],
        "any way, synced or not": BULK,
    }
    kept = [
        Target(f"bulk push, {what}", ours / max(rate[way.name] for way in ways), 5.0, True)
        for what, ways in rivals.items()
    ]
    return table(head, rows), kept


# -- latency --------------------------------------------------------------------------------

WAITERS = {
    OURS: "sprat, pool.wait() then claim()",
    "litequeue": "litequeue, pop() every 50 ms",
    "persistqueue": "persist-queue, get(timeout=0.05)",
    "huey": "Huey, its consumer as it comes",
}


def latency() -> tuple[str, list[Target]]:
    """From the call of push in one process to the item in the hands of an idle other one."""
    n = scaled(PUSHES)
    with tempfile.TemporaryDirectory(prefix="sprat-bench-") as place:
        waiters = {queue: _start(queue, place, do="wait") for queue in WAITERS}
        for waiter in waiters.values():
            _ready(waiter)
        pushers = {queue: _start(queue, place, do="push") for queue in WAITERS}
        for pusher in pushers.values():
            _ready(pusher)
        _push_in_turn(pushers, n)
        pushed = {queue: _finish(pusher)["pushed"] for queue, pusher in pushers.items()}
        time.sleep(3.0)
        waited = {queue: _finish(waiter) for queue, waiter in waiters.items()}
    return _latency_table(pushed, waited, n)


def _start(queue: str, place: str, **order: object) -> subprocess.Popen[str]:
    own = f"{place}/{queue}"
    subprocess.run(["mkdir", "-p", own], check=True)
    order = {**order, "place": own, "synced": None, "idle_seconds": IDLE_SECONDS}
    script = str(HERE / "queues" / f"{queue}_queue.py")
    command = [_python(queue), script, json.dumps(order)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _ready(process: subprocess.Popen[str]) -> None:
    assert process.stdout is not None
    if process.stdout.readline().strip() != "ready":
        raise SystemExit(f"{process.args!r} did not start")


def _push_in_turn(pushers: dict[str, subprocess.Popen[str]], n: int) -> None:
    dice = random.Random(1)
    for number in range(n):
        for pusher in dice.sample(list(pushers.values()), len(pushers)):
            assert pusher.stdin is not None
            time.sleep(dice.uniform(*GAP_SECONDS))
            pusher.stdin.write(f"{number}\n")
            pusher.stdin.flush()


def _finish(process: subprocess.Popen[str]) -> Figures:
    out, _ = process.communicate("")
    figures: Figures = json.loads(out)
    return figures


def _latency_table(
    pushed: dict[str, Figures], waited: dict[str, Figures], n: int
) -> tuple[str, list[Target]]:
    rows: list[list[object]] = []
    middle: dict[str, float] = {}
    for queue, name in WAITERS.items():
        times, arrived = pushed[queue], waited[queue]["arrived"]
        if len(arrived) != n:
            raise SystemExit(f"{name}: {len(arrived)} of {n} items arrived")
        spans = [(arrived[number] - times[number][0]) / 1e6 for number in times]
        after = [(arrived[number] - times[number][1]) / 1e6 for number in times]
        middle[queue] = percentile(spans, 50)
        figures = [percentile(spans, percent) for percent in (50, 95, 99)]
        idle = waited[queue]["idle_percent"]
        settings = waited[queue]["settings"]
        rows.append([name, *figures, max(0.0, percentile(after, 50)), idle, settings])
    head = ["push to claim, ms", "p50", "p95", "p99", "p50 after push", "idle CPU %", "settings"]
    best = min(value for queue, value in middle.items() if queue != OURS)
    return table(head, rows), [Target("latency p50", middle[OURS] / best, 0.2)]


def section() -> tuple[str, list[Target]]:
    parts: list[str] = []
    kept: list[Target] = []
    for title, measure in (
        ("Claims and settles survive a process crash (our default)", partial(jobs, False)),
        ("Every commit synced (`?sync=all`)", partial(jobs, True)),
        ("Bulk push", bulk),
        ("From push to claim, with an idle waiter in another process", latency),
    ):
        print(title, file=sys.stderr)
        text, found = measure()
        parts.append(f"### {title}\n\n{text}")
        kept += found
    versions = ", ".join(one.replace("==", " ") for one in environment.PINNED)
    fsync = f"{environment.fsync_seconds() * 1e3:.1f} ms"
    parts.insert(0, f"Others: {versions}. One fsync of the disk used: {fsync}.")
    parts.append(targets("ours against the best other", kept))
    return "\n\n".join(parts), kept


if __name__ == "__main__":
    print(section()[0])
