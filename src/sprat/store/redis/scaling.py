"""Snapshots, decisions and statistics."""

from __future__ import annotations

from sprat.core import histogram, jsontext, model, payload, reason_labels
from sprat.store.backend import Backend
from sprat.store.redis.items import new_request
from sprat.store.redis.rows import counts_of, micros, moment, worker_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from sprat.store.redis.client import RedisClient

KINDS = {
    "a": histogram.ARRIVE,
    "w": histogram.WAIT,
    "r": histogram.RUN,
    "d": histogram.DONE,
    "f": histogram.FAIL,
}
# The fields of a decision that the script has no use for, kept as JSON text.
STORED = ("policy", "direction", "current", "desired", "reason", "inputs")


class RedisScaling(Backend):
    """The verbs of a scaling pass, and statistics."""

    _client: RedisClient

    def observe(self, pool: str, group: str | None, window: float) -> model.Snapshot:
        now, counts, held, workers, oldest, due, *state, sums = self._client.run(
            "observe", pool, group or "", repr(window), int(group == model.NO_GROUP)
        )
        pause, reason, parked, version, up, down, failures, failed_at = state
        return model.Snapshot(
            pool=pool,
            group=group,
            version=version,
            now=now / 1e6,
            counts=counts_of(counts, group),
            held=held,
            workers=tuple([worker_of(row) for row in workers]),
            oldest_ready_seconds=moment(oldest),
            next_due_seconds=moment(due),
            paused=pause is None or pause >= 0,
            paused_seconds=None if pause is None or pause < 0 else pause / 1e6,
            pause_reason=reason,
            parked=_summed(parked),
            last_up_at=moment(up),
            last_down_at=moment(down),
            launch_failures=failures,
            last_launch_failure_at=moment(failed_at),
            stats=histogram.summarise(window, [row for _, _, row in _read(sums)]),
        )

    def record(self, version: int, decision: model.Decision) -> model.RecordedDecision | None:
        needed = () if decision.group is None else (decision.group,)
        request = {
            "pool": decision.pool,
            "group": decision.group,
            "direction": decision.direction,
            "launch": ["w-" + worker_id for worker_id in payload.new_ids(decision.launch)],
            "drain": list(decision.drain),
            "reason": decision.reason,
            "counted_as": reason_labels.number(decision.reason),
            "max_workers": decision.max_workers,
            "deadline": micros(decision.start_deadline_seconds),
            "capabilities": list(dict.fromkeys((*decision.capabilities, *needed))),
        }
        stored = {name: getattr(decision, name) for name in STORED}
        stored["inputs"] = dict(decision.inputs)
        reply = self._client.run(
            "record", new_request(), version, jsontext.dumps(request), jsontext.dumps(stored)
        )
        if reply is None:
            return None
        number, at, launched, drained = reply
        return model.RecordedDecision(
            version=number,
            at=at / 1e6,
            pool=decision.pool,
            group=decision.group,
            launched=tuple(launched),
            drained=tuple(drained),
            **stored,
        )

    def decisions(self, pool: str, group: str | None, limit: int) -> list[model.RecordedDecision]:
        return [
            model.RecordedDecision(
                version=version,
                at=at / 1e6,
                pool=pool,
                group=of_group or None,
                launched=tuple(launched),
                drained=tuple(drained),
                **jsontext.loads(stored),
            )
            for version, at, of_group, launched, drained, stored in self._client.run(
                "decisions", pool, group or "", limit
            )
        ]

    def stats(self, pool: str, seconds: float) -> model.Stats:
        sums = self._client.run("history", pool, repr(seconds))
        return histogram.summarise(seconds, [row for _, _, row in _read(sums)])

    def history(self, pool: str, seconds: float) -> list[model.StatsBucket]:
        return histogram.history(_read(self._client.run("history", pool, repr(seconds))))

    def totals(self, pool: str) -> model.Totals:
        sums, decisions = self._client.run("totals", pool)
        return histogram.totals([*(row for _, _, row in _read(sums)), *_decided(decisions)])


def _summed(parked: Sequence[Any]) -> dict[str, int]:
    """Items per task; a task may come once per group."""
    totals: dict[str, int] = {}
    for task, n in zip(parked[::2], parked[1::2], strict=True):
        totals[task] = totals.get(task, 0) + n
    return totals


def _decided(counts: Sequence[Any]) -> Iterator[histogram.Row]:
    for name, n in zip(counts[::2], counts[1::2], strict=True):
        direction, _, reason = name.partition(":")
        yield direction, int(reason), n, 0.0, 0.0


def _read(sums: Sequence[str]) -> Iterator[tuple[int, int, histogram.Row]]:
    for text in sums:
        width, at, name, n, total, squares = text.split(":")
        row = (KINDS[name[0]], int(name[1:]), int(n), float(total), float(squares))
        yield int(at), int(width), row
