"""Which errors of a job ask to be tried again without charging the attempt."""

from __future__ import annotations

import pytest

from sprat.errors import Poison, Transient
from sprat.processor import is_transient


class TimeoutException(Exception):
    pass


class PoolTimeout(TimeoutException):
    pass


class HttpError(Exception):
    def __init__(self, status_code: int) -> None:
        self.status_code = status_code


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
