"""/metrics: every series from the start, the store's own counters, no worker's id."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from houses import OPTIONS, Client, House
from servers.orchestrator import serving

from sprat.core.model import Decision, WorkerRegistration
from sprat.core.reason_labels import REASONS
from sprat.server import metrics
from sprat.store.open_store import open_store

# Milliseconds are what the names of the design say.
KNOWN_COMPLAINTS = {
    f"sprat_job_{name} metric names should not contain abbreviated units"
    for name in ("p95_latency_ms", "execution_p95_ms")
}
SAMPLE = re.compile(r"^(sprat_\w+)(?:\{(.*)\})? (\S+)$")


def scraped(client: Client) -> dict[str, float]:
    text = client("GET", "/metrics").body
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    found = {}
    for line in lines:
        match = SAMPLE.match(line)
        assert match, line
        found[f"{match[1]}{{{match[2]}}}"] = float(match[3])
    return found


def test_every_series_is_there_at_zero(house: House, viewer: Client) -> None:
    house.store.pool("papers").configure(max_workers=3)
    seen = scraped(viewer)
    label = 'pool="papers"'
    for name in ("jobs_completed_total", "jobs_failed_total", "queue_depth", "total_workers"):
        assert seen[f"sprat_worker_pool_{name}{{{label}}}"] == 0
    for way in ("up", "down"):
        for why in REASONS:
            name = f'sprat_autoscaler_scale_{way}_events_total{{{label},reason="{why}"}}'
            assert seen[name] == 0
    assert seen[f"sprat_autoscaler_cooldown_blocks_total{{{label}}}"] == 0
    assert seen[f'sprat_job_wait_time_seconds_bucket{{{label},le="+Inf"}}'] == 0
    assert seen[f"sprat_worker_pool_max_workers{{{label}}}"] == 3


def test_counters_and_histograms_count_all_work(house: House, viewer: Client) -> None:
    pool = house.store.pool("papers")
    pool.push("before the first scrape")
    scraped(viewer)
    pool.push_many(range(4))
    house.now += 100
    worker = house.store.workers.register(
        WorkerRegistration(worker_id="w-secret-name", pool_id="papers", lease_seconds=9999)
    )
    for seconds in (0.5, 5.0):
        item = pool.claim(worker)
        assert item is not None
        pool.complete(item, seconds=seconds)
    item = pool.claim(worker)
    assert item is not None
    pool.fail(item, "no")
    for _ in range(2):  # another scrape counts nothing twice
        seen = scraped(viewer)
    label = 'pool="papers"'
    assert seen[f"sprat_worker_pool_jobs_added_total{{{label}}}"] == 5
    assert seen[f"sprat_worker_pool_jobs_completed_total{{{label}}}"] == 2
    assert seen[f"sprat_worker_pool_jobs_failed_total{{{label}}}"] == 1
    assert seen[f'sprat_worker_pool_jobs{{{label},status="done"}}'] == 2
    assert seen[f'sprat_job_execution_time_seconds_bucket{{{label},le="1"}}'] == 2
    assert seen[f'sprat_job_execution_time_seconds_bucket{{{label},le="15"}}'] == 3
    assert seen[f"sprat_job_execution_time_seconds_count{{{label}}}"] == 3
    assert seen[f"sprat_job_wait_time_seconds_sum{{{label}}}"] == pytest.approx(300)
    assert not [name for name in seen if "w-secret-name" in name]


def test_scaling_is_counted_with_its_reason(house: House, viewer: Client) -> None:
    pool = house.store.pool("papers")
    pool.configure(max_workers=3)
    scraped(viewer)
    decision = Decision(
        pool="papers",
        policy="fixed",
        direction="up",
        current=0,
        desired=1,
        reason="p95 3 s is more than 2 s",
        launch=1,
        max_workers=3,
    )
    assert pool.record(decision, version=pool.observe().version)
    seen = scraped(viewer)
    name = 'sprat_autoscaler_scale_up_events_total{pool="papers",reason="latency"}'
    assert seen[name] == 1


def test_every_server_of_a_store_reports_the_same_counters(house: House) -> None:
    key = house.keys["viewer", None]
    name = 'sprat_worker_pool_jobs_added_total{pool="papers"}'
    with serving(house.store, OPTIONS) as other:
        for n in range(1, 4):
            house.store.pool("papers").push_many(range(10))
            seen = [scraped(Client(port, key)) for port in (house.served.port, other.port)]
            assert [one[name] for one in seen] == [10 * n, 10 * n]
            shared = [
                {name: n for name, n in one.items() if "sprat_http_" not in name} for one in seen
            ]
            assert shared[0] == shared[1]


def test_a_restart_resets_no_counter(tmp_path: Path) -> None:
    options = OPTIONS.replace(auth=False)
    seen = []
    for _ in range(2):
        with open_store(f"sqlite:///{tmp_path}/fleet.db") as store, serving(store, options) as it:
            store.pool("papers").push_many(range(3))
            seen.append(scraped(Client(it.port)))
    name = 'sprat_worker_pool_jobs_added_total{pool="papers"}'
    assert [one[name] for one in seen] == [3, 6]


def test_what_a_process_counts_itself_has_its_name(house: House, viewer: Client) -> None:
    """Two processes behind one address must not look like one that restarts again and again."""
    house.served.state.process = "a-host:2"
    scraped(viewer)
    own = {name for name in scraped(viewer) if name.startswith("sprat_http_")}
    route = 'method="GET",route="/metrics",status="200"'
    assert own == {
        f'sprat_http_requests_total{{process="a-host:2",{route}}}',
        'sprat_http_request_seconds_total{process="a-host:2"}',
    }


def test_a_sum_of_seconds_never_goes_down_by_the_order_of_its_terms() -> None:
    """A store adds buckets up in another order once they are old."""
    rng = random.Random(7)
    for _ in range(300):
        terms = [rng.randrange(10**7) / 1e6 for _ in range(50)]
        shuffled = rng.sample(terms, len(terms))
        sums = [
            sample
            for order in (terms, shuffled)
            for sample in metrics._histogram("h", {}, {}, sum(order))
            if sample[0] == "h_sum"
        ]
        assert sums[0] == sums[1]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_prometheus_complains_about_nothing_but_milliseconds(house: House, viewer: Client) -> None:
    house.store.pool("papers").push(1)
    text = viewer("GET", "/metrics").body
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=text, text=True, capture_output=True, check=False
    )
    complaints = set(done.stderr.splitlines())
    assert complaints <= KNOWN_COMPLAINTS, done.stdout + done.stderr
    assert done.returncode in (0, 3), "3: it is well-formed, with complaints about style"
