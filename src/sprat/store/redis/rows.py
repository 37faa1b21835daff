"""Replies of the scripts as records, and records as arguments."""

from __future__ import annotations

import math

from sprat.core import jsontext, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

COUNTED = ("pending", "delayed", "backlog", "claimed", "done", "poisoned", "cancelled")
TASK = 23  # its place among the fields of an item


def micros(seconds: float) -> int:
    """The scripts count in whole microseconds; what binary fractions add is none."""
    return math.ceil(seconds * 1e6 - 1e-3)


def signed(text: str | None) -> str:
    """A text that may be empty or missing: '' is missing, the rest has a sign in front."""
    return "" if text is None else "=" + text


def moment(value: int | None) -> float | None:
    return None if value is None else value / 1e6


def stored(data: str, task: str | None) -> str:
    """The payload as the store keeps it: the task is in front of it, JSON does not begin so."""
    return data if task is None else f"@{task}\n{data}"


def payload_of(text: str) -> tuple[str | None, Any]:
    """The task and the payload."""
    if text[0] != "@":
        return None, jsontext.loads(text)
    task, _, data = text[1:].partition("\n")
    return task, jsontext.loads(data)


def item_of(row: list[Any]) -> model.WorkItem:
    """The reply has the order of the fields."""
    task, row[2] = payload_of(row[2])
    row[7] = row[7] or None  # tenant and group are '' in the store
    row[8] = row[8] or None
    if row[13] is not None:
        row[13] = jsontext.loads(row[13])
    if row[14] is not None:
        row[14] = float(row[14])
    if row[16] is not None:
        row[16] = jsontext.loads(row[16])
    row[18] /= 1e6
    for place in (19, 20, 21):
        if row[place] is not None:
            row[place] /= 1e6
    row.insert(TASK, task)
    return model.WorkItem.of(row)


def handed_out(run: list[Any], pool: str, worker_id: str) -> list[model.WorkItem]:
    """Items as their worker gets them; what is the same for all of them is in the reply once."""
    shared, values = run
    attempts, max_retries, priority, tenant, group, key, given_back, claimed_at, *more = shared
    error, checkpoint, progress, note, transients = more
    like = [
        *("", pool, None, model.CLAIMED, attempts, max_retries, priority, tenant or None),
        *(group or None, key, worker_id, 0, "", checkpoint and jsontext.loads(checkpoint)),
        *(progress and float(progress), note, None, error, 0.0, None, claimed_at / 1e6, None),
        *(given_back, None, transients, None),
    ]
    items = []
    for item_id, data, epoch, token, created_at in zip(*[iter(values)] * 5, strict=True):
        like[TASK], like[2] = payload_of(data)
        like[0], like[11] = item_id, epoch
        like[12], like[18] = token, created_at / 1e6
        items.append(model.WorkItem.of(like))
    return items


def worker_of(row: Sequence[Any]) -> model.WorkerRecord:
    values: list[Any] = list(row)
    values[5] = tuple(values[5])
    for place in (6, 7, 8, 9):
        values[place] /= 1e6
    names, texts = values[13][::2], values[13][1::2]
    values[13] = {n: jsontext.loads(text) for n, text in zip(names, texts, strict=True)}
    return model.WorkerRecord.of(values)


def pairs(metadata: Mapping[str, Any]) -> list[str]:
    """Metadata as names and JSON texts in turn, so that a script can merge it key by key."""
    return [part for name, value in metadata.items() for part in (name, jsontext.dumps(value))]


def counts_of(reply: Sequence[Any], group: str | None = None) -> model.Counts:
    counts = dict.fromkeys(COUNTED, 0)
    for field, n in zip(reply[::2], reply[1::2], strict=True):
        of_group, _, name = field.rpartition("\1")
        if group is None or of_group == group:
            counts[name] += int(n)
    return model.Counts(**counts)
