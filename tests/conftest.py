"""Fixtures: every test that takes `store` runs once over each store of `worlds.WORLDS`."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import pytest
from worlds import SHARED, WORLDS, World, check_counts

from sprat.core.model import WorkerRecord, WorkerRegistration
from sprat.store.pool import WorkPool
from sprat.store.store import Store

# Who runs the tests in the background of a shell has SIGINT ignored, and so would all children.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests run side by side, on a machine that is then saturated: their fleets launch all the same.
os.environ["SPRAT_LAUNCH_WHEN_SATURATED"] = "1"

TEST_NAME = "PYTEST_CURRENT_TEST"  # pytest changes it itself

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")


@pytest.fixture(autouse=True)
def same_environment() -> Iterator[None]:
    """Commands that run in the process of the tests set variables for their jobs (SPRAT_URL): the
    programs of the next test must not find them."""
    before = _environment()
    yield
    if _environment() != before:
        for name in set(os.environ) - set(before) - {TEST_NAME}:
            del os.environ[name]
        os.environ.update(before)


def _environment() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name != TEST_NAME}


@pytest.fixture(params=list(WORLDS))
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    world = WORLDS[request.param](tmp_path)
    yield world
    world.close()


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    """An empty store. However a test leaves it, its counts must be those of its items."""
    store = world.open()
    yield store
    for name in store.pools():
        check_counts(store.pool(name))


@pytest.fixture(params=SHARED)
def shared(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    """An empty store that many processes use. Whatever they did to each other in it, its counts
    must be those of its items."""
    world = WORLDS[request.param](tmp_path)
    yield world
    store = world.open()
    for name in store.pools():
        check_counts(store.pool(name))
    world.check()
    world.close()


@pytest.fixture
def shared_url(shared: World) -> str:
    return shared.url


@pytest.fixture
def open_again(world: World, store: Store) -> Callable[[], Store]:
    """Opens a second Store on the same data, as another process would."""
    return world.open


@pytest.fixture
def advance(world: World, store: Store) -> Callable[[float], None]:
    """Moves the store's clock forward."""
    return world.advance


@pytest.fixture
def pool(store: Store) -> WorkPool:
    return store.pool("papers")


@pytest.fixture
def enrol(store: Store) -> Callable[..., WorkerRecord]:
    """Registers an active worker, by default with a lease longer than any test's time."""

    def enrol(worker_id: str = "w1", **about: object) -> WorkerRecord:
        about = {"lease_seconds": 80_000.0, **about}
        return store.workers.register(WorkerRegistration(worker_id=worker_id, **about))

    return enrol


@pytest.fixture
def worker(enrol: Callable[..., WorkerRecord]) -> WorkerRecord:
    return enrol("w1")
