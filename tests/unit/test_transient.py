"""Which errors of a job ask to be tried again without charging the attempt."""

from __future__ import annotations

import pytest

from sprat.core.errors import Poison, Throttled, Transient
from sprat.worker.processor import failed, is_transient


class TimeoutException(Exception):
    pass


class PoolTimeout(TimeoutException):
    pass


class HttpError(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


class Answered(Exception):
    """As of a client whose error has the answer, with its headers."""

    def __init__(self, status: int, retry_after: str | None) -> None:
        self.response = HttpError(status)
        self.response.headers = {} if retry_after is None else {"Retry-After": retry_after}


class ErrorWithResponse(Exception):
    def __init__(self, status: int) -> None:
        self.response = HttpError(status)


@pytest.mark.parametrize(
    "error",
    [
        Transient("slow down"),
        TimeoutError(),
        ConnectionResetError(),
        PoolTimeout(),
        *(HttpError(code) for code in (429, 500, 503, 599)),
        ErrorWithResponse(502),
    ],
    ids=repr,
)
def test_it_may_be_better_later(error: Exception) -> None:
    assert is_transient(error)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("bad"),
        Poison("never"),
        KeyError("timeout"),
        *(HttpError(code) for code in (200, 400, 404, 600)),
        ErrorWithResponse(401),
    ],
    ids=repr,
)
def test_it_will_not_be_better_later(error: Exception) -> None:
    assert not is_transient(error)


@pytest.mark.parametrize(
    ("error", "delay", "throttled"),
    [
        (Throttled(delay_seconds=30), 30.0, True),
        (Throttled(), 10.0, True),
        (Answered(429, "7"), 7.0, False),
        (Answered(429, "0.5"), 0.5, False),
        (Answered(429, None), None, False),
        (Answered(429, "Wed, 21 Oct 2026 07:28:00 GMT"), None, False),
        (Answered(429, "-3"), None, False),
        (Answered(503, "7"), None, False),
        (HttpError(429), None, False),
        (Transient("slow down", delay_seconds=5), 5.0, False),
        (ValueError("bad"), None, False),
    ],
    ids=repr,
)
def test_the_pool_waits_only_if_the_job_asks_for_it(
    error: Exception, delay: float | None, throttled: bool
) -> None:
    outcome = failed(error)
    assert (outcome.delay_seconds, outcome.throttled) == (delay, throttled)


def test_a_service_that_says_when_to_come_again_slows_the_job_down() -> None:
    assert failed(Answered(429, "7")).is_throttled
    assert failed(Throttled()).is_throttled
    assert not failed(Answered(503, "7")).is_throttled
