"""Eight processes and tenants with limits: no tenant ever has more running than it may."""

from __future__ import annotations

import random
import time
from collections import Counter

from processes import Together, at_once
from worlds import World

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool

PROCESSES = 8
LIMITS = {"small": 1, "middle": 2, "big": 3}
EACH = 40

Span = tuple[str, float, float]  # a tenant, and from when to when its item surely ran


def running(pool: WorkPool) -> Counter[str]:
    """What runs for each tenant, by the store's own account of one moment."""
    return Counter(item.tenant for item in pool.items("claimed", limit=500) if item.tenant)


def work(place: int, together: Together, url: str) -> tuple[list[Span], Counter[str]]:
    """The spans of this process' items, and the most that was ever seen running."""
    chance = random.Random(place)
    spans: list[Span] = []
    most: Counter[str] = Counter()
    with open_store(url) as store:
        pool = store.pool("papers")
        worker = store.workers.register(WorkerRegistration(worker_id=f"w{place}"))
        together()
        while pool.size():
            items = pool.claim_many(worker, chance.randint(1, 4))
            claimed_at = time.monotonic()
            most |= running(pool)
            spans += [(item.tenant or "", claimed_at, time.monotonic()) for item in items]
            assert all(pool.settle_many([pool.completion(item) for item in items]))
    return spans, most


def most_at_once(spans: list[Span]) -> int:
    """How many of the spans overlap where most of them do."""
    events = sorted([(start, 1) for _, start, _ in spans] + [(end, -1) for _, _, end in spans])
    level = top = 0
    for _, change in events:
        level += change
        top = max(top, level)
    return top


def test_tenant_never_exceeds_its_limit(shared: World, shared_url: str) -> None:
    pool = shared.open().pool("papers")
    pool.configure(tenant_limit=2, tenant_limits={"small": 1, "big": 3})
    for tenant in LIMITS:
        pool.push_many(range(EACH), tenant=tenant)
    pool.push_many(range(EACH))
    logs = at_once(PROCESSES, work, shared_url)
    spans = [span for log, _ in logs for span in log]
    assert Counter(tenant for tenant, _, _ in spans) == {"": EACH, **dict.fromkeys(LIMITS, EACH)}
    seen: Counter[str] = Counter()
    for _, most in logs:
        seen |= most
    for tenant, limit in LIMITS.items():
        assert most_at_once([span for span in spans if span[0] == tenant]) <= limit
        assert 0 < seen[tenant] <= limit
    assert pool.counts().done == 4 * EACH
