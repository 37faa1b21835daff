"""What the orchestrator says about a scale set: asked for again, and remembered."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from controllers import ask
from servers.orchestrator import Served, serving

from sprat.controller.remote import Remote
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

PATH = "/scale-sets/acme/big%20gpu/config"


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def served() -> Iterator[Served]:
    with serving(Store(MemoryBackend())) as served:
        yield served


def put(served: Served, **config: float) -> None:
    assert ask(served.port, PATH, "PUT", config)[0] == 200


def test_it_is_asked_again_when_its_time_is_over(served: Served) -> None:
    clock, complaints = Clock(), []
    remote = Remote(served.url, 60.0, complain=complaints.append, clock=clock)
    assert remote.limits("acme", "big gpu")["max_replicas"] == 10
    put(served, max_replicas=50, poll_interval_seconds=5)
    assert remote.limits("acme", "big gpu")["max_replicas"] == 10, "what was said is still good"
    clock.now = 60.1
    said = remote.limits("acme", "big gpu")
    assert (said["max_replicas"], said["poll_interval_seconds"]) == (50, 5)
    assert remote.limits("acme", "cpu")["max_replicas"] == 10
    assert complaints == []


def test_the_last_good_copy_counts_while_there_is_no_answer(served: Served) -> None:
    clock, complaints = Clock(), []
    remote = Remote(served.url, 60.0, complain=complaints.append, clock=clock)
    put(served, max_replicas=50)
    remote.limits("acme", "big gpu")
    served.stop()
    served.join()
    clock.now = 3600.0
    assert remote.limits("acme", "big gpu")["max_replicas"] == 50
    assert len(complaints) == 1
    assert "what it said last counts: no answer from http://127.0.0.1:" in complaints[0]
    clock.now += 1.0
    remote.limits("acme", "big gpu")
    assert len(complaints) == 1, "it is not asked all the time"
    clock.now += 5.0
    remote.limits("acme", "big gpu")
    assert len(complaints) == 2


def test_without_any_answer_there_are_the_defaults() -> None:
    complaints: list[str] = []
    remote = Remote("http://127.0.0.1:1", 60.0, complain=complaints.append)
    assert remote.limits("acme", "gpu") == {}
    assert "no configuration for acme/gpu, the defaults count: no answer from" in complaints[0]
