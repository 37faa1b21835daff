"""What the keys of controllers and workers may do with documents: theirs, and no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from servers.orchestrator import OPEN, Served, serving

from sprat.controller.lease import ControllerLease
from sprat.core.errors import SpratError
from sprat.server import keys
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store
from sprat.store.store import Store


@pytest.fixture
def store() -> Store:
    return Store(MemoryBackend())


@pytest.fixture
def served(store: Store) -> Iterator[Served]:
    with serving(store, OPEN.replace(auth=True)) as served:
        yield served


def opened(
    served: Served, store: Store, monkeypatch: pytest.MonkeyPatch, role: str, tenant: str | None
) -> Store:
    """The store over HTTP, with a key of this role."""
    monkeypatch.setenv("SPRAT_API_KEY", keys.create(store.backend, (role,), tenant=tenant)[1])
    return open_store(served.url)


@pytest.mark.parametrize("tenant", [None, "acme"])
def test_a_controller_keeps_its_lease_and_reads_nothing_else(
    served: Served, store: Store, monkeypatch: pytest.MonkeyPatch, tenant: str | None
) -> None:
    remote = opened(served, store, monkeypatch, "controller", tenant)
    held = ControllerLease(remote.backend, "papers", holder="a", seconds=15.0)
    assert held.hold(lambda: {"group": None})
    remote.backend.put("scaling", "papers/", "{}", None, None)
    assert remote.backend.document("scaling", "papers/") is not None
    store.backend.put("trigger", "mine", "{}", None, None)
    for kind in ("trigger", keys.KIND, "scale_set"):
        with pytest.raises(SpratError):
            remote.backend.document(kind, "mine")
        with pytest.raises(SpratError):
            remote.backend.put(kind, "mine", "{}", None, None)


def test_a_worker_reads_what_its_controller_goes_by_and_changes_nothing(
    served: Served, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ControllerLease(store.backend, "papers", holder="a", seconds=15.0).hold(lambda: {"group": None})
    remote = opened(served, store, monkeypatch, "worker", None)
    assert remote.backend.document("controller", "papers") is not None
    with pytest.raises(SpratError):
        remote.backend.put("controller", "papers", None, None, None)
    with pytest.raises(SpratError):
        remote.backend.document("trigger", "mine")


def test_one_tenants_lease_is_not_anothers(
    served: Served, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours = opened(served, store, monkeypatch, "controller", "acme")
    theirs = opened(served, store, monkeypatch, "controller", "umbrella")
    for remote, holder in ((ours, "a"), (theirs, "b")):
        held = ControllerLease(remote.backend, "papers", holder=holder, seconds=15.0)
        assert held.hold(lambda: {"group": None})
