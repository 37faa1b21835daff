"""Fixtures for what only the PostgreSQL store has."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from servers import postgres
from worlds import WORLDS, World, check_counts

from sprat.store.pool import WorkPool
from sprat.store.store import Store


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = WORLDS["postgres"](tmp_path)
    yield world
    world.close()


@pytest.fixture
def store(world: World) -> Iterator[Store]:
    store = world.open()
    yield store
    for name in store.pools():
        check_counts(store.pool(name))


@pytest.fixture
def url(world: World) -> str:
    return world.url


@pytest.fixture
def pool(store: Store) -> WorkPool:
    return store.pool("papers")


@pytest.fixture
def mine(url: str) -> Iterator[psycopg.Connection]:
    """A connection of the application's own, as psycopg makes them."""
    with psycopg.connect(url) as db:
        yield db


@pytest.fixture
def server() -> Iterator[postgres.Server]:
    """A server for one test alone, to be stopped and killed."""
    postgres.require()
    server = postgres.Server(postgres.MEMORY / f"sprat-postgres-{uuid.uuid4().hex}")
    try:
        yield server
    finally:
        server.remove()
