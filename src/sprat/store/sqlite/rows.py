"""Rows of the tables as records."""

from __future__ import annotations

from sprat.core import jsontext, model

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

# In the order of the fields of WorkItem. A finished item keeps its last token, unseen.
ITEM_COLUMNS = """id, pool_name, data, status, attempts, max_retries, priority, tenant, grp, key,
claimed_by, epoch, iif(status = 'claimed', token, NULL), checkpoint, progress, progress_note,
result, error, created_at, run_at, claimed_at, finished_at, given_back, task, transients, hold"""

# What the index work_pool_live holds: a statement that is to use it has to say so in these words.
LIVE = "run_at IS NULL AND status IN ('pending', 'claimed')"
READY = f"claimed_by IS NULL AND {LIVE}"  # of those, what waits; the others are claimed
ENDED = "status IN ('poisoned', 'cancelled')"  # what the index work_pool_ended holds

# Of a worker. A text that only looks like it has a pass asked for that finds nothing to do.
SUSPENDED = """(instr(metadata, '"suspended":true') > 0)"""

# claims: the running item first, then those claimed ahead
WORKER_COLUMNS = f"""worker_id, status, pool_id, host, pid, capabilities, started_at,
last_heartbeat, lease_seconds, lease_until, incarnation, metadata, reason, renewals,
(SELECT count(*) FROM work_pool WHERE claimed_by = worker_id AND {LIVE}),
(SELECT id FROM work_pool WHERE claimed_by = worker_id AND {LIVE}
 ORDER BY ahead, claimed_at, seq LIMIT 1)"""
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
    values["capabilities"] = tuple(jsontext.loads(values["capabilities"]))
    values["metadata"] = jsontext.loads(values["metadata"])
    return model.WorkerRecord(**values)
