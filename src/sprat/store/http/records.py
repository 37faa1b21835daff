"""Records out of the JSON of an orchestrator's answers. Fields that only a newer one knows are
left out, those that an older one does not know are at their defaults."""

from __future__ import annotations

from sprat.core import model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    from sprat.core.record import Record

    R = TypeVar("R", bound=Record)


def record(kind: type[R], given: dict[str, Any]) -> R:
    """A flat record; its lists become tuples."""
    names = kind._names
    return kind(
        **{
            name: tuple(value) if isinstance(value, list) else value
            for name, value in given.items()
            if name in names
        }
    )


def item(given: dict[str, Any]) -> model.WorkItem:
    """An item, whose payload, result and checkpoint stay as they are."""
    names = model.WorkItem._names
    if tuple(given) == names:
        return model.WorkItem.of(given.values())
    return model.WorkItem(**{name: value for name, value in given.items() if name in names})


def found(given: dict[str, Any]) -> model.Found:
    return model.Found(items=tuple([item(one) for one in given["items"]]), after=given["after"])


def exchange(given: dict[str, Any]) -> model.Exchange:
    return model.Exchange(
        settled=tuple(given["settled"]),
        started=given["started"],
        items=tuple([item(one) for one in given["items"]]),
        version=given.get("version"),
    )


def worker(given: dict[str, Any]) -> model.WorkerRecord:
    return record(model.WorkerRecord, given)


def bucket(given: dict[str, Any]) -> model.StatsBucket:
    return record(model.StatsBucket, {**given, **_bins(given)})


def totals(given: dict[str, Any]) -> model.Totals:
    decisions = [record(model.DecisionCount, one) for one in given["decisions"]]
    return record(model.Totals, {**given, **_bins(given), "decisions": decisions})


def _bins(given: dict[str, Any]) -> dict[str, Any]:
    return {name: [tuple(one) for one in given.get(name, ())] for name in ("waits", "runs")}


def pool_state(given: dict[str, Any]) -> model.PoolState:
    settings = record(model.PoolSettings, given["settings"])
    return record(model.PoolState, {**given, "settings": settings})


def snapshot(given: dict[str, Any]) -> model.Snapshot:
    return record(
        model.Snapshot,
        {
            **given,
            "counts": record(model.Counts, given["counts"]),
            "stats": record(model.Stats, given["stats"]),
            "workers": [worker(one) for one in given["workers"]],
        },
    )
