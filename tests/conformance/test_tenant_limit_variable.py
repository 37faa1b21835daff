"""PER_TENANT_MAX_CONCURRENCY limits what one tenant runs in pools without a limit of their own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from sprat.config import project_file
from sprat.core.errors import InvalidInput
from sprat.core.model import WorkerRecord
from sprat.store.pool import WorkPool

VARIABLE = "PER_TENANT_MAX_CONCURRENCY"
Enrol = Callable[..., WorkerRecord]


@pytest.fixture(autouse=True)
def three(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "3")


def test_the_fourth_job_of_a_tenant_waits_while_anothers_runs(pool: WorkPool, enrol: Enrol) -> None:
    for number in range(5):
        pool.push(number, tenant="A")
    pool.push("other", tenant="B")
    items = []
    for number in range(5):
        enrol(f"w{number}")
        items.append(pool.claim(f"w{number}"))
    running = [item for item in items if item is not None]
    assert sorted(item.tenant or "" for item in running) == ["A", "A", "A", "B"]
    first = next(item for item in running if item.tenant == "A")
    assert pool.complete(first)
    item = pool.claim("w4")
    assert item is not None
    assert item.tenant == "A"


def test_the_limit_of_a_pool_comes_first(pool: WorkPool) -> None:
    pool.configure(tenant_limit=1)
    pool.push(1, tenant="A")
    assert pool.state().settings.tenant_limit == 1


def test_a_push_without_a_tenant_changes_no_settings(pool: WorkPool) -> None:
    pool.push(1)
    assert pool.state().version == 0


def test_the_default_of_a_file_is_the_variable(tmp_path: Path) -> None:
    file = tmp_path / "sprat.yml"
    file.write_text("pools: {a: {}, b: {tenant_limit: 7}}")
    pools = project_file.load(str(file)).pools
    assert (pools["a"].tenant_limit, pools["b"].tenant_limit) == (3, 7)


def test_nonsense_is_refused(pool: WorkPool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "many")
    with pytest.raises(InvalidInput, match=f"{VARIABLE} must be a whole number"):
        pool.push(1, tenant="A")
    assert pool.counts().total == 0
