"""Fixtures: a house with a server, and a client for each role in it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

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


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and certificates that it signed for a server and a client."""
    place = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=place, check=True, capture_output=True)

    key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl(
        *("req", "-x509", *key, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2"),
        *("-subj", "/CN=test authority"),
    )
    for name in ("server", "client"):
        openssl(
            "req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"
        )
        (place / "names").write_text("subjectAltName=IP:127.0.0.1\n")
        openssl(
            *("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key"),
            *("-CAcreateserial", "-days", "2", "-out", f"{name}.pem", "-extfile", "names"),
        )
    return place
