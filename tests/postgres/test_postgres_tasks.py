"""Tasks pushed inside a transaction of the application's own: they run after its commit."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from patience import eventually

from sprat.core.errors import UnknownItem
from sprat.store.store import Store

PROGRAM = """
import os, psycopg, sprat, sys

@sprat.task(pool="analyses", idle_seconds=0.1, isolation="none", max_workers=1)
def analyze(a, b=0):
    return a - b

WAYS = {
    "options": lambda mine: analyze.options(connection=mine).push(44, b=2),
    "push": lambda mine: analyze.push(44, b=2, connection=mine),
    "pool": lambda mine: analyze.pool().push({"a": 44, "b": 2}, connection=mine),
}

if __name__ == "__main__":
    way, end = sys.argv[1:]
    if way == "pool":
        sprat.result(analyze.push(1), 60)  # the pool knows the task from here on
    with psycopg.connect(os.environ["SPRAT_URL"]) as mine:
        job = WAYS[way](mine)
        getattr(mine, end)()
    print(job)
    if end == "commit":
        analyze.pool().start_fleet()
        print(sprat.result(job, 60))
"""
each_way = pytest.mark.parametrize("way", ["options", "push", "pool"])


def run(place: Path, url: str, *arguments: str) -> list[str]:
    (place / "analysis.py").write_text(PROGRAM)
    environment = {**os.environ, "SPRAT_URL": url, "TMPDIR": str(place)}
    ran = subprocess.run(
        [sys.executable, "analysis.py", *arguments],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split()


def until_gone(store: Store) -> None:
    eventually(lambda: not store.workers.list(status=("starting", "active", "terminating")))


@each_way
def test_a_task_pushed_with_the_callers_connection_runs_after_its_commit(
    store: Store, url: str, tmp_path: Path, way: str
) -> None:
    job, result = run(tmp_path, url, way, "commit")
    assert result == "42"
    assert store.pool("analyses").get(job).attempts == 1
    until_gone(store)


@each_way
def test_it_is_gone_with_the_callers_transaction(
    store: Store, url: str, tmp_path: Path, way: str
) -> None:
    [job] = run(tmp_path, url, way, "rollback")
    with pytest.raises(UnknownItem):
        store.pool("analyses").get(job)
    assert store.pool("analyses").counts().pending == 0
    until_gone(store)
