"""Rows of the tables as records."""

from __future__ import annotations

from sprat.core import jsontext, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sprat.store.sql.transaction import SqlTransaction

ITEM_FIELDS = 26  # of a row: ITEM_COLUMNS of a dialect are in the order of the fields of WorkItem
WORKER_FIELDS = (
    *("worker_id", "status", "pool_id", "host", "pid", "capabilities", "started_at"),
    *("last_heartbeat", "lease_seconds", "lease_until", "incarnation", "metadata", "reason"),
    *("renewals", "claims", "current_task_id"),
)


def item_of(row: tuple[Any, ...]) -> model.WorkItem:
    values = list(row[:ITEM_FIELDS])
    values[2] = jsontext.loads(values[2])
    values[7] = values[7] or None  # tenant and group are '' in the table
    values[8] = values[8] or None
    for place in (13, 16):  # checkpoint and result
        if values[place] is not None:
            values[place] = jsontext.loads(values[place])
    return model.WorkItem.of(values)


def worker_of(tx: SqlTransaction, row: tuple[Any, ...]) -> model.WorkerRecord:
    values = dict(zip(WORKER_FIELDS, row, strict=True))
    values["capabilities"] = tx.texts(values["capabilities"])
    values["metadata"] = jsontext.loads(values["metadata"])
    return model.WorkerRecord(**values)
