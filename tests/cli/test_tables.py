"""Tables on a terminal, in a pipe and on a narrow screen: nothing that is copied is cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from sprat.cli import status
from sprat.core import model
from sprat.store.store import Store

Run = Callable[..., Any]
CALL = {"args": ["https://example.org/page/7", 2], "kwargs": {}}


def test_piped_tables_are_not_cut(sprat: Run, store: Store) -> None:
    store.pool("numbers").push({"text": "long " * 100 + "end"})
    assert "end" in sprat("jobs", "list", "numbers").out


def test_columns_sets_the_width(sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    store.pool("numbers").push({"text": "long " * 100})
    for width in (70, 100):
        monkeypatch.setenv("COLUMNS", str(width))
        assert max(map(len, sprat("jobs", "list", "numbers").out.splitlines())) == width
    monkeypatch.setenv("COLUMNS", "wide")
    assert max(map(len, sprat("jobs", "list", "numbers").out.splitlines())) > 400


@pytest.mark.parametrize("width", ["", "80", "60", "30"])
def test_names_and_ids_are_never_cut(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    name = "backtest_" + "m" * 50
    job = store.pool(name).push("x" * 200)
    worker = model.WorkerRegistration(worker_id="w-" + "0" * 28, pool_id=name)
    store.workers.register(worker)
    assert name in sprat("status").out
    assert job in sprat("jobs", "list", name).out
    listed = sprat("workers", "list").out
    assert name in listed
    assert worker.worker_id in listed


def test_a_long_name_leaves_the_other_rows_as_they_are(
    sprat: Run, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    store.pool("a" * 60).push(1)
    heading, long, rest, short = sprat("status").out.splitlines()
    assert long == "a" * 60
    assert rest.split()[0] == "1"
    assert short.startswith("numbers  ")
    assert max(map(len, (heading, rest, short))) <= 80


@pytest.mark.parametrize(
    ("data", "shown"),
    [
        (CALL, "scrape('https://example.org/page/7', 2)"),
        ({"args": [], "kwargs": {"n": None, "deep": [True]}}, "scrape(n=None, deep=[True])"),
        ({"url": "x"}, "scrape(url='x')"),
        (7, "scrape(7)"),
    ],
)
def test_jobs_list_shows_calls(sprat: Run, store: Store, data: object, shown: str) -> None:
    item_id = store.pool("numbers").push(data, task="pages:scrape")
    assert sprat("jobs", "list", "numbers").out.splitlines()[1].endswith(f"  {shown}")
    full = sprat("jobs", "show", item_id).out
    assert re.search(rf"^call +{re.escape(shown)}$", full, re.MULTILINE)
    assert "kwargs" not in full


def test_jobs_show_has_one_column_of_labels_and_absolute_times(sprat: Run, store: Store) -> None:
    item_id = store.pool("numbers").push({"n": 1}, delay=600)
    lines = sprat("jobs", "show", item_id).out.splitlines()
    starts = {re.match(r"\S+( \S+)? +", line).end() for line in lines}  # type: ignore[union-attr]
    assert len(starts) == 1
    (created,) = [line for line in lines if line.startswith("created")]
    assert re.search(r" s ago \(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\)$", created)
    (due,) = [line for line in lines if line.startswith("run ")]
    assert "in 10 min (" in due


def test_the_rates_of_a_table_have_one_unit() -> None:
    rates = [status._per_minute(per_second) for per_second in (0.0, 0.2, 1.6, 1000.0)]
    assert rates == ["0/min", "12.0/min", "96.0/min", "60,000/min"]
