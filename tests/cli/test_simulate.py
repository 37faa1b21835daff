"""`sprat simulate`: the table, the picture, a pool's own history, and what it refuses."""

from __future__ import annotations

import gzip
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sprat.core.model import WorkerRegistration
from sprat.store.store import Store

Run = Callable[..., Any]
TRACE = "arrival_s,service_s\n" + "".join(f"{t},{20 + t % 7}\n" for t in range(0, 1200, 5))


@pytest.fixture
def trace(place: Path) -> Path:
    path = place / "load.csv"
    path.write_text(TRACE)
    return path


def test_policies_are_compared_in_a_table(sprat: Run, trace: Path) -> None:
    answer = sprat("simulate", "load.csv", "--policy", "queue-depth,keda,oracle")
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith("load: 240 jobs in 20 min")
    assert [line.split()[0] for line in lines[2:6]] == ["policy", "queue-depth", "keda", "oracle"]
    assert answer.out == sprat("simulate", "load.csv", "--policy", "queue-depth,keda,oracle").out


def test_a_picture_that_cannot_be_drawn_is_named(sprat: Run, trace: Path) -> None:
    answer = sprat("simulate", "load.csv", "--policy", "fixed", "--picture", "no/where.svg")
    assert (answer.code, answer.err) == (1, "sprat: no/where.svg: No such file or directory\n")


def test_without_names_ours_and_others_are_compared(sprat: Run, trace: Path) -> None:
    seen = sprat("simulate", "load.csv", "--json").data
    assert {"queue-depth", "keda", "knative", "oracle"} <= {o["policy"] for o in seen["outcomes"]}
    assert all(o["jobs"] == 240 and o["interrupted"] == 0 for o in seen["outcomes"])
    assert all(o["cost"] >= 1 and isinstance(o["met"], bool) for o in seen["outcomes"])


def test_a_target_out_of_reach_is_called_so_with_the_reason(sprat: Run, place: Path) -> None:
    """Forty at once, at no regular times, who are to start in a quarter of what a worker takes."""
    begins = [1000 * n + 400 * (n * n % 3) for n in range(1, 31)]
    rows = [f"{begin + n / 40},20\n" for begin in begins for n in range(40)]
    (place / "batches.csv").write_text("arrival_s,service_s\n" + "".join(rows))
    command = ("simulate", "batches.csv", "--policy", "slo", "--cold-start", "40s")
    answer = sprat(*command, "--wait-target", "10s")
    last = answer.out.splitlines()[-1]
    assert last.startswith("slo said at last: ")
    assert last.endswith("95 % cannot be met at this cold start")
    assert "% were late lately, with all that is kept" in last
    assert sprat(*command, "--wait-target", "10s", "--json").data["outcomes"][0]["verdict"]
    assert "slo said" not in sprat(*command, "--wait-target", "2m").out


def test_predictive_is_compared_like_slo_and_is_told_the_wait_target(
    sprat: Run, trace: Path
) -> None:
    line = ("simulate", "load.csv", "--policy", "slo,predictive", "--cold-start", "40s", "--json")
    slo, predictive = sprat(*line, "--wait-target", "2m").data["outcomes"]
    assert predictive["policy"] == "predictive"
    assert predictive["cost"] == slo["cost"], "they differ only below the cold start"


def test_options_reach_their_policy(sprat: Run, trace: Path) -> None:
    def cost(*options: str) -> list[float]:
        line = ("simulate", "load.csv", "--policy", "keda,headroom", "--json", *options)
        return [o["cost"] for o in sprat(*line).data["outcomes"]]

    keda, headroom = cost()
    changed = cost("--option", "keda.target=1")
    assert changed[0] > keda
    assert changed[1] == headroom


def test_a_zipped_trace_is_read_and_other_columns_are_ignored(sprat: Run, place: Path) -> None:
    with gzip.open(place / "load.csv.gz", "wt") as file:
        file.write("name,service_s,arrival_s\na,5,0\nb,6,1\n\n")
    seen = sprat(
        "simulate", "load.csv.gz", "--policy", "fixed", "--max-workers", "2", "--json"
    ).data
    assert seen["trace"] == {"name": "load", "jobs": 2, "seconds": 1.0}


def test_the_picture_shows_arrivals_backlog_and_workers(sprat: Run, trace: Path) -> None:
    answer = sprat(
        "simulate", "load.csv", "--policy", "queue-depth,knative", "--picture", "out.svg"
    )
    assert answer.code == 0
    drawing = ET.parse("out.svg").getroot()
    texts = [text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"queue-depth", "knative", "arrivals a minute", "jobs waiting"} <= set(texts)
    lines = list(drawing.iter("{http://www.w3.org/2000/svg}polyline"))
    assert len(lines) == 4  # backlog and workers of two
    assert all(len(line.attrib["points"].split()) > 50 for line in lines)


def test_a_pool_s_own_history_is_replayed(sprat: Run, store: Store) -> None:
    pool = store.pool("numbers")
    store.workers.register(WorkerRegistration(worker_id="w", pool_id="numbers"))
    pool.push_many([{"n": n} for n in range(30)])
    while item := pool.claim("w"):
        pool.complete(item, 1, seconds=12.0)
    store.close()  # statistics are held back for a moment: now they are written
    seen = sprat("simulate", "--pool", "numbers", "--policy", "queue-depth,oracle", "--json").data
    assert seen["trace"]["jobs"] == 30
    assert [o["useful_seconds"] for o in seen["outcomes"]] == [pytest.approx(360)] * 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "line 1: no column arrival_s"),
        ("arrival_s,seconds\n1,2\n", "line 1: no column service_s"),
        ("arrival_s,service_s\n", "has no jobs"),
        ("arrival_s,service_s\n0,1\n1,x\n", "line 3: service_s must be a number, not 'x'"),
        ("arrival_s,service_s\n0,-1\n", "line 2: service_s must be a number that is not negative"),
        ("arrival_s,service_s\nnan,1\n", "line 2: arrival_s must be a number that is not negative"),
        ("arrival_s,service_s\n0,inf\n", "line 2: service_s must be seconds within a year"),
        ("arrival_s,service_s\n1e300,1\n", "line 2: arrival_s must be seconds within a year"),
        ("arrival_s,service_s\n5,1\n4,1\n", "line 3: it arrives before the job above it"),
        ("arrival_s,service_s\n5\n", "line 2: service_s must be a number, not ''"),
    ],
)
def test_a_bad_trace_is_refused_with_its_line(
    text: str, says: str, sprat: Run, place: Path
) -> None:
    (place / "bad.csv").write_text(text)
    answer = sprat("simulate", "bad.csv")
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("simulate", "name a trace file, or a pool with --pool"),
        ("simulate load.csv --pool numbers", "but not both"),
        ("simulate gone.csv", "cannot read the trace gone.csv: No such file"),
        ("simulate .", "cannot read the trace .: Is a directory"),
        ("simulate load.csv --policy kedda", "there is no policy 'kedda': did you mean keda?"),
        ("simulate load.csv --policy ,", "--policy names nobody"),
        ("simulate load.csv --policy keda --option target", "--option must be K=V"),
        ("simulate load.csv --policy keda --option targt=2", "did you mean target?"),
        ("simulate load.csv --policy keda --option target=-2", "must be a number from 0.001 on"),
        ("simulate load.csv --policy keda,dask --option target=2", "Write keda.target=2"),
        ("simulate load.csv --policy keda --option dask.x=2", "not among --policy"),
        ("simulate load.csv --min-workers 5 --max-workers 4", "--min-workers 5 is more than"),
        ("simulate load.csv --max-workers 0", "no job would ever be done"),
        ("simulate load.csv --poll 0", "--poll must be more than 0"),
        ("simulate load.csv --cold-start soon", "it must be a time such as"),
        ("simulate load.csv --picture out.png", "--picture draws SVG"),
        ("simulate --pool xyzzy", "there is no pool 'xyzzy'"),
        ("simulate --pool numbers", "the pool numbers has no recorded history"),
    ],
)
def test_what_cannot_be_simulated_is_one_sentence(
    line: str, says: str, sprat: Run, trace: Path, store: Store
) -> None:
    answer = sprat(*line.split())
    assert (answer.code, answer.out) == (2, "")
    assert says in answer.err
    assert answer.err.count("\n") == 1
