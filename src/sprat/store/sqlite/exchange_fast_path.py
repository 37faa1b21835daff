"""The commonest exchange, straight on: one job is done and the next one is claimed.

It does what exchange.py does, in four statements instead of seven, when nothing is special:
the pool has no lanes and nothing delayed is due, the worker is active with most of its lease left,
and the job that is done was claimed from the same pool. Whatever is special goes the long way.
"""

from __future__ import annotations

from sprat.core import jsontext, model
from sprat.core.runtime import runtime
from sprat.store.sqlite import claims, marks
from sprat.store.sqlite.exchange import exchange as any_exchange
from sprat.store.sqlite.lanes import ONE_LANE
from sprat.store.sqlite.rows import READY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sprat.store.backend import WorkerRef
    from sprat.store.sqlite.connection import Connection

# All that decides, in one look; there is a row only if nothing is special.
_LOOK = """
SELECT b.value + ?3, {held}, i.seq, i.ready_at, i.id, i.data, i.attempts, i.max_retries,
       i.priority, i.key, i.epoch, i.checkpoint, i.progress, i.progress_note, i.error,
       i.created_at, i.given_back, i.task, i.transients, p.version
FROM meta b CROSS JOIN worker_registry w CROSS JOIN pool p {claims} CROSS JOIN work_pool i
WHERE b.name = 'clock_base'
  AND w.worker_id = ?1 AND w.status = 'active' AND coalesce(?4 = w.incarnation, TRUE)
  AND w.lease_until - (b.value + ?3) >= w.lease_seconds / 2 AND NOT w.renewals
  AND p.name = ?2 AND NOT p.has_lanes AND coalesce(p.paused_until <= b.value + ?3, TRUE)
  AND NOT EXISTS (SELECT 1 FROM work_pool
      WHERE pool_name = ?2 AND status = 'pending' AND run_at <= b.value + ?3)
  AND i.seq = (SELECT seq FROM work_pool
      WHERE pool_name = ?2 AND {next} LIMIT 1)
  AND i.hold IS NULL
"""
_NEXT = f"{READY} AND {ONE_LANE}"
LOOK_FIRST = _LOOK.format(held="NULL, NULL", claims="", next=_NEXT)
LOOK_NEXT = (
    _LOOK.format(held="h.seq, h.claimed_at", claims="CROSS JOIN work_pool h", next=_NEXT)
    + "  AND h.id = ?5 AND h.token = ?6 AND h.status = 'claimed' AND h.pool_name = ?2"
)
CLAIM = """
UPDATE work_pool SET status = 'claimed', claimed_by = ?2, claimed_at = ?3, token = ?4,
       epoch = epoch + 1, attempts = attempts + 1, ahead = 0, room = NULL
WHERE seq = ?1
"""
COUNT_FIRST = """
UPDATE pool_count SET pending = pending - 1, claimed = claimed + 1
WHERE pool_name = ? AND grp = ''
"""
COUNT_NEXT = """
UPDATE pool_count SET pending = pending - 1, done = done + 1
WHERE pool_name = ? AND grp = ''
"""


def exchange(
    connection: Connection,
    pool: str,
    worker: WorkerRef,
    settlements: Sequence[model.Settlement],
    announced: bool,
) -> model.Exchange:
    """At most one settlement, and one claim. In one piece, with flat tuples: a call, or a list
    in between, is a hundredth of what a job costs."""
    worker_id, incarnation = worker
    with connection.lock:
        try:
            run = connection.begin(connection.sync_all)
            moment = runtime.monotonic()
            seen = ran = None
            if not settlements:
                seen = run(LOOK_FIRST, (worker_id, pool, moment, incarnation)).fetchone()
            else:
                held_id, held_token, outcome, result, _, _, ran = settlements[0]
                if outcome == model.COMPLETE:
                    about = (worker_id, pool, moment, incarnation, held_id, held_token)
                    seen = run(LOOK_NEXT, about).fetchone()
            if seen is None:
                rest: dict[str, Any] = {"settlements": settlements, "announced": announced}
                rest |= {"start": None, "claim": 1}
                return connection.finish(True, any_exchange, (pool, worker), rest)
            (now, held, claimed_at, seq, ready_at, item_id, data, attempts, max_retries, priority,
             key, epoch, checkpoint, progress, note, error, created_at,
             given_back, task, transients, version) = seen  # fmt: skip
            if now >= connection.touch_at:
                connection.touch_at = marks.touch(connection.transaction())
            token = runtime.random_bytes(8).hex()
            if settlements:
                run(claims.COMPLETE, (held, result, now))
                run(CLAIM, (seq, worker_id, now, token))
                run(COUNT_NEXT, (pool,))
                if ran is None:
                    ran = now - claimed_at
            else:
                run(CLAIM, (seq, worker_id, now, token))
                run(COUNT_FIRST, (pool,))
            if moment < connection.notes.due_at:
                run("COMMIT")
            else:
                connection.end(connection.transaction(), holds=True)
            connection.notes.jobs.append((pool, now, now - ready_at, ran))
        except BaseException as error:
            connection.undo(error)
            raise
    saved = None if checkpoint is None else jsontext.loads(checkpoint)
    item = model.WorkItem.of(
        (item_id, pool, jsontext.loads(data), model.CLAIMED, attempts + 1, max_retries, priority,
         None, None, key, worker_id, epoch + 1, token, saved, progress, note, None, error,
         created_at, None, now, None, given_back, task, transients, None)
    )  # fmt: skip
    return model.Exchange.of(((True,) if settlements else (), True, (item,), version))
