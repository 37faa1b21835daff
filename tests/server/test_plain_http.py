"""Without TLS a key, and the commands that workers run, belong to everything on the way."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest
from servers.orchestrator import OPEN, serving

from sprat.cli.main import main
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.launchers.docker import containers
from sprat.launchers.docker import options as docker
from sprat.launchers.kubernetes import options as kubernetes
from sprat.launchers.kubernetes.pods import PodOrder, pod
from sprat.server import keys
from sprat.store.http.address import read
from sprat.store.memory.backend import MemoryBackend
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.client import Client

REFUSED = "everything on the way could read the key and change what workers run"


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.0.0.2:81", "localhost:8000", "[::1]:8000", "LOCALHOST"]
)
def test_this_machine_needs_no_tls(host: str) -> None:
    assert not read(f"http://{host}", {}).is_tls


@pytest.mark.parametrize(
    "host",
    [
        *("sprat.example.com", "10.0.0.1:8000", "0.0.0.0:8000", "[::]:8000", "[fe80::1]"),
        *("127.0.0.1.nip.io", "127.evil.example", "localhost.evil.example", "notlocalhost"),
    ],
)
def test_another_machine_needs_it_unless_a_variable_allows_http(host: str) -> None:
    with pytest.raises(InvalidInput, match=REFUSED):
        read(f"http://{host}", {"SPRAT_API_KEY": "k"})
    with pytest.raises(InvalidInput, match=REFUSED):
        read(f"http://{host}", {"SPRAT_ALLOW_HTTP": "0"})
    assert not read(f"http://{host}", {"SPRAT_ALLOW_HTTP": "1"}).is_tls
    assert read(f"https://{host}", {}).is_tls


@pytest.mark.parametrize(
    "words",
    [("work", "papers", "--idle", "0"), ("push", "papers", "1"), ("status",), ("controller",)],
)
def test_no_command_connects(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """0.0.0.0 reaches this machine, but nothing says that it does."""
    monkeypatch.chdir(tmp_path)
    Path("worker-controller-config.yaml").write_text("launcher: process\npool: papers\n")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        monkeypatch.setenv("SPRAT_URL", f"http://0.0.0.0:{listening.getsockname()[1]}")
        monkeypatch.setenv("SPRAT_API_KEY", "sprat_aaaaaaaaaa_secret")
        assert main(list(words)) == 2
        listening.setblocking(False)
        with pytest.raises(BlockingIOError):
            listening.accept()
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert REFUSED in said.err
    assert "secret" not in said.err


def test_where_it_is_allowed_the_store_and_own_workers_connect(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    about = {"worker_id": "w", "worker_type": "own", "endpoint_url": "http://127.0.0.1:1"}
    behind = Store(MemoryBackend())
    monkeypatch.setenv("SPRAT_API_KEY", keys.create(behind.backend, ("worker", "admin"))[1])
    with serving(behind, OPEN.replace(auth=True)) as served:
        url = f"http://0.0.0.0:{served.port}"
        with pytest.raises(InvalidInput, match=REFUSED):
            Client(url, **about)
        monkeypatch.setenv("SPRAT_ALLOW_HTTP", "1")
        Client(url, **about).register()
        with open_store(url) as store:
            assert [one.worker_id for one in store.workers.list()] == ["w"]


def test_launched_workers_may_do_what_their_launcher_may(monkeypatch: pytest.MonkeyPatch) -> None:
    def container() -> dict[str, str]:
        options = docker.Options(image="i")
        url = "http://orchestrator:8000"
        made = containers.order(url, "p", settings=PoolSettings(), options=options, engine="e")
        return dict(made.environment)

    monkeypatch.delenv("SPRAT_ALLOW_HTTP", raising=False)
    assert "SPRAT_ALLOW_HTTP" not in container()
    monkeypatch.setenv("SPRAT_ALLOW_HTTP", "1")
    assert container()["SPRAT_ALLOW_HTTP"] == "1"
    order = PodOrder(
        url="http://orchestrator:8000",
        pool="p",
        options=kubernetes.Options(image="i"),
        namespace="n",
        mark="m",
        allows_http=True,
    )
    env = pod(order, "w")["spec"]["containers"][0]["env"]
    assert {"name": "SPRAT_ALLOW_HTTP", "value": "1"} in env
    env = pod(order.replace(allows_http=False), "w")["spec"]["containers"][0]["env"]
    assert "SPRAT_ALLOW_HTTP" not in {one["name"] for one in env}
