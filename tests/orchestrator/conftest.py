"""Fixtures: a house with a server, and a client for each role in it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from houses import Client, House


@pytest.fixture
def house() -> Iterator[House]:
    house = House()
    yield house
    house.close()


@pytest.fixture
def admin(house: House) -> Client:
    return house.client("admin")


@pytest.fixture
def pusher(house: House) -> Client:
    return house.client("pusher")


@pytest.fixture
def worker(house: House) -> Client:
    return house.client("worker")


@pytest.fixture
def viewer(house: House) -> Client:
    return house.client("viewer")


@pytest.fixture
def controller(house: House) -> Client:
    return house.client("controller")
