"""The alert rules and the dashboard: they speak only of what a real scrape has."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from houses import Client, House

FILES = Path(__file__).parents[2] / "docs" / "operate" / "observability"
METRIC = re.compile(r"sprat_[a-z0-9_]+")
EXPRESSION = re.compile(r"^ +expr: (.*?)(?: +#.*)?$", re.MULTILINE)
IS_REQUIRED = os.environ.get("SPRAT_TEST_REQUIRE_SERVERS") == "1"

needs_promtool = pytest.mark.skipif(
    shutil.which("promtool") is None and not IS_REQUIRED,
    reason="promtool is not installed: tools/packages prometheus",
)


def rules() -> list[str]:
    return EXPRESSION.findall((FILES / "alerts.yml").read_text())


def dashboard_queries() -> list[str]:
    board = json.loads((FILES / "dashboard.json").read_text())
    asked = [one["expr"] for panel in board["panels"] for one in panel["targets"]]
    return asked + [one["query"] for one in board["templating"]["list"] if one["type"] == "query"]


def scraped(house: House, viewer: Client) -> set[str]:
    """The names of all samples; a series that is there at zero counts."""
    house.store.pool("papers").push(1)
    text = viewer("GET", "/metrics").body
    return {line.partition("{")[0] for line in text.splitlines() if not line.startswith("#")}


@pytest.mark.parametrize("asked", [*rules(), *dashboard_queries()])
def test_what_is_asked_for_is_in_a_scrape(house: House, viewer: Client, asked: str) -> None:
    named = set(METRIC.findall(asked))
    assert named
    assert named <= scraped(house, viewer)


def test_there_are_the_three_alerts_and_no_panel_without_a_query() -> None:
    assert len(rules()) == 3
    assert len(dashboard_queries()) >= 10


@needs_promtool
@pytest.mark.parametrize(
    "words",
    ["check rules alerts.yml", "test rules alerts_test.yml", "check config prometheus.yml"],
)
def test_promtool_agrees(words: str) -> None:
    done = subprocess.run(
        ["promtool", *words.split()], cwd=FILES, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
