"""The heartbeat thread stops the job of its own worker, for its own reason."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator

import pytest

from sprat.worker.heartbeat_thread import HeartbeatThread
from sprat.worker.job import Stopped


@pytest.fixture
def beats() -> Iterator[HeartbeatThread]:
    thread = HeartbeatThread(lambda: True, pause=lambda: 60.0, timeout=0.1)
    thread.start()
    yield thread
    thread.end()


def test_a_job_is_stopped_when_its_time_is_over(beats: HeartbeatThread) -> None:
    with pytest.raises(Stopped, match="stopped after 0"):
        work(beats, 10.0)
    assert beats.stopped


def test_the_reason_of_a_stopped_job_is_not_that_of_the_next(beats: HeartbeatThread) -> None:
    with pytest.raises(Stopped):
        work(beats, 10.0)
    beats.begin()
    with pytest.raises(Stopped) as stopped:
        beats.stop_now()
    beats.finish()
    assert str(stopped.value) == ""


def test_only_the_running_job_is_stopped(beats: HeartbeatThread) -> None:
    other = HeartbeatThread(lambda: True, pause=lambda: 60.0)
    other.start()
    beats.begin()
    other.stop_now()  # runs no job
    with pytest.raises(Stopped):
        beats.stop_now()
    beats.stop_now()  # once
    beats.finish()
    other.end()


def test_the_signal_handler_is_as_before_in_the_end() -> None:
    before = signal.getsignal(signal.SIGUSR2)
    thread = HeartbeatThread(lambda: True, pause=lambda: 60.0)
    thread.start()
    thread.end()
    assert signal.getsignal(signal.SIGUSR2) == before


def work(beats: HeartbeatThread, seconds: float) -> None:
    try:
        beats.begin()
        time.sleep(seconds)
    finally:
        beats.finish()
