"""What a push does beside storing its item: little, and once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sprat import open_store
from sprat.cli import main
from sprat.launchers.process import launcher
from sprat.store.store import Store
from sprat.triggers import events


class Counted:
    """A backend that notes the verbs that were called."""

    def __init__(self, backend: Any) -> None:
        self._backend = backend
        self.verbs: list[str] = []

    def __getattr__(self, name: str) -> Any:
        verb = getattr(self._backend, name)

        def called(*given: object, **options: object) -> Any:
            self.verbs.append(name)
            return verb(*given, **options)

        return called if callable(verb) else verb


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store in which a pass is on its way already, so that a push need not start one."""
    monkeypatch.setattr(launcher, "run_apart", lambda *about: None)
    with open_store(f"sqlite:///{tmp_path}/fleet.db") as store:
        store.pool("papers").configure(command=["true"], start_on_push=True)
        store.pool("papers").push(0)
        yield store


def test_a_push_is_three_transactions(store: Store) -> None:
    backend = Counted(store.backend)
    store.backend = backend  # type: ignore[assignment]  # only for this test
    store.pool("papers").push(1)
    assert backend.verbs == ["push", "pool_state", "request_check"]


def test_resume_and_requeue_start_the_fleet_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    starts: list[str] = []
    monkeypatch.setattr(events, "work_added", lambda _, pool, *__: starts.append(pool))
    assert main.main(["resume", "papers", "--url", store.url]) == 0
    assert starts == ["papers"]
    [item] = store.pool("papers").items()
    store.pool("papers").cancel(item.id)
    assert main.main(["jobs", "requeue", item.id, "--url", store.url]) == 0
    assert starts == ["papers", "papers"]
    assert main.main(["jobs", "requeue", item.id, "--url", store.url]) == 0
    assert starts == ["papers", "papers"]  # nothing became ready
