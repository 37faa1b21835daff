"""Rows of the tables as records."""

from __future__ import annotations

from sprat.core import jsontext, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# In the order of the fields of WorkItem. A finished item keeps its last token, unseen.
ITEM_COLUMNS = """id, pool_name, data, status, attempts, max_retries, priority, tenant, grp, key,
claimed_by, epoch, CASE status WHEN 'claimed' THEN token END, checkpoint, progress, progress_note,
result, error, created_at, run_at, claimed_at, finished_at, given_back,
task, transients, hold"""

# Of a worker. A text that only looks like it has a pass asked for that finds nothing to do.
SUSPENDED = """(position('"suspended":true' IN metadata) > 0)"""

# claims: the running item first, then those claimed ahead
WORKER_COLUMNS = """worker_id, status, pool_id, host, pid, capabilities, started_at,
last_heartbeat, lease_seconds, lease_until, incarnation, metadata, reason, renewals,
(SELECT count(*) FROM sprat.work_pool i WHERE i.claimed_by = worker_id AND i.status = 'claimed'),
(SELECT i.id FROM sprat.work_pool i WHERE i.claimed_by = worker_id AND i.status = 'claimed'
 ORDER BY i.ahead, i.claimed_at, i.seq LIMIT 1)"""
WORKER_FIELDS = (
    *("worker_id", "status", "pool_id", "host", "pid", "capabilities", "started_at"),
    *("last_heartbeat", "lease_seconds", "lease_until", "incarnation", "metadata", "reason"),
    *("renewals", "claims", "current_task_id"),
)


def item_of(row: tuple[Any, ...]) -> model.WorkItem:
    values = list(row)
    values[2] = jsontext.loads(values[2])
    values[7] = values[7] or None  # tenant and group are '' in the table
    values[8] = values[8] or None
    for place in (13, 16):  # checkpoint and result
        if values[place] is not None:
            values[place] = jsontext.loads(values[place])
    return model.WorkItem.of(values)


def worker_of(row: tuple[Any, ...]) -> model.WorkerRecord:
    values = dict(zip(WORKER_FIELDS, row, strict=True))
    values["capabilities"] = tuple(values["capabilities"])
    values["metadata"] = jsontext.loads(values["metadata"])
    return model.WorkerRecord(**values)
