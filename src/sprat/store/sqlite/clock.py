"""The store's clock: one stored number added to the host's monotonic clock.

Time in the store neither goes back nor jumps when the host's clock is set. When the wall clock is
ahead (the machine slept, or its clock was set forward) the store follows, and every live worker
starts a full lease then: none is taken for dead because of it. After a reboot the monotonic clock
starts anew: the number is then made from the wall clock, or from the latest time found in the store
if that is later. No worker of the file survives a reboot: every lease ends there.
"""

from __future__ import annotations

import os

from sprat.core import leases
from sprat.core.runtime import runtime
from sprat.store.sqlite import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from sprat.store.sqlite.transaction import SqliteTransaction, WriteTransaction

SLACK_SECONDS = 2.0  # the wall clock may lead by this much before the store follows
BOOT_ID = "/proc/sys/kernel/random/boot_id"

BASE = "SELECT value FROM meta WHERE name = 'clock_base'"
BOOT = "SELECT value FROM meta WHERE name = 'clock_boot'"
SET = "INSERT OR REPLACE INTO meta VALUES (?, ?)"
LATEST = """
SELECT max(coalesce((SELECT created_at FROM work_pool ORDER BY seq DESC LIMIT 1), 0.0),
           coalesce((SELECT max(last_heartbeat) FROM worker_registry), 0.0),
           coalesce((SELECT max(at + width) FROM pool_stats), 0.0))
"""
END_LEASES = """
UPDATE worker_registry SET lease_until = ?1, renewals = ?2
WHERE status IN ('starting', 'active', 'terminating')
"""
RENEW_LEASES = """
UPDATE worker_registry SET lease_until = ?1 + lease_seconds, last_heartbeat = ?1
WHERE status IN ('starting', 'active', 'terminating')
"""


def now(run: Callable[..., Any]) -> float:
    base: float = run(BASE).get
    return base + runtime.monotonic()


def is_behind(tx: SqliteTransaction) -> bool:
    return runtime.time() - tx.now > SLACK_SECONDS or tx.run(BOOT).get != boot()


def catch_up(tx: WriteTransaction) -> None:
    rebooted = tx.run(BOOT).get != boot()
    latest = tx.run(LATEST).get if rebooted else tx.now
    moment = max(runtime.time(), latest)
    tx.run(SET, ("clock_base", moment - runtime.monotonic()))
    tx.run(SET, ("clock_boot", boot()))
    tx.run(marks.SET, (moment,))
    if rebooted:
        tx.run(END_LEASES, (moment, leases.MOST_RENEWALS))
    else:
        tx.run(RENEW_LEASES, (moment,))


def boot() -> str:
    """Names this run of the machine; where the system does not tell, one name for all."""
    try:
        file = os.open(BOOT_ID, os.O_RDONLY | os.O_CLOEXEC)  # a tenth of what open() costs
    except OSError:
        return "unknown"
    try:
        return os.read(file, 100).decode().strip()
    finally:
        os.close(file)
