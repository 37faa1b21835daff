"""Calling something again when it fails, here and now: base * 2^attempt, give or take some jitter.

For a call inside a job or a program. It waits in the calling thread, and what it knows ends with
the process. An item of a pool is retried by the store instead (see retry_rules.py).
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from random import random as any_number
from typing import Any

from sprat.config import environment
from sprat.core.coroutines import outcome
from sprat.core.errors import InvalidInput, Poison
from sprat.core.record import Record

MAX_RETRIES = 1_000_000
MAX_MS = 7 * 86400.0 * 1000


class RetryConfig(Record):
    """How often to try again, and how long to wait before."""

    max_retries: int = 3  # besides the first call
    base_ms: float = 400
    jitter_pct: float = 0.2  # 0.2: up to 20 % more or less, so that many do not return as one
    cap_ms: float = 300_000  # no pause is longer, jitter aside

    @classmethod
    def from_env(cls, variables: Mapping[str, str] | None = None) -> RetryConfig:
        """From MAX_RETRIES, RETRY_BASE_MS and RETRY_JITTER_PCT; unset ones have their defaults."""
        values = environment.given(variables)
        usual = cls()
        return cls(
            max_retries=environment.whole(values, "MAX_RETRIES", usual.max_retries, MAX_RETRIES),
            base_ms=environment.real(values, "RETRY_BASE_MS", usual.base_ms, MAX_MS),
            jitter_pct=environment.real(values, "RETRY_JITTER_PCT", usual.jitter_pct, 1.0),
        )

    def checked(self) -> RetryConfig:
        """Itself, or InvalidInput."""
        if type(self.max_retries) is not int or not 0 <= self.max_retries <= MAX_RETRIES:
            raise InvalidInput(
                f"max_retries must be a whole number from 0 to {MAX_RETRIES}, "
                f"not {self.max_retries!r}"
            )
        for name, high in (("base_ms", MAX_MS), ("jitter_pct", 1.0), ("cap_ms", MAX_MS)):
            value = getattr(self, name)
            is_number = isinstance(value, int | float) and not isinstance(value, bool)
            if not is_number or not 0 <= value <= high:
                raise InvalidInput(f"{name} must be a number from 0 to {high:g}, not {value!r}")
        return self

    def delay_seconds(self, attempt: int, chance: float) -> float:
        """How long to wait after a failed attempt, the first being 0. `chance` is a random number
        from 0 to 1."""
        full = min(self.cap_ms, math.ldexp(self.base_ms, min(attempt, 60)))
        return full / 1000 * (1.0 + self.jitter_pct * (2.0 * chance - 1.0))


def retry_with_backoff(
    job_id: str,
    task: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    config: RetryConfig | None = None,
    *,
    sleep: Callable[[float], object] = time.sleep,
    random: Callable[[], float] = any_number,
    is_transient: Callable[[Exception], bool] | None = None,
) -> tuple[bool, Exception | None]:
    """Call the task until it succeeds: (True, None), or (False, the last error).

    `max_retries` of 2 means at most three calls. A Poison error, and with `is_transient` any error
    of which it says no, is final. An error with `delay_seconds` (Transient, for one) says itself
    how long to wait. Without a config, that of the environment is used."""
    config = RetryConfig.from_env() if config is None else config.checked()
    attempt = 0
    while True:
        try:
            outcome(task(*args, **(kwargs or {})))
            return True, None
        except Exception as error:  # noqa: BLE001  (whatever a task raises is its result)
            if attempt >= config.max_retries or not _may_pass(error, is_transient):
                return False, error
            delay = getattr(error, "delay_seconds", None)
            pause = config.delay_seconds(attempt, random()) if delay is None else max(0.0, delay)
            attempt += 1
            _log(job_id, attempt, config.max_retries, pause, error)
        sleep(pause)


def _may_pass(error: Exception, is_transient: Callable[[Exception], bool] | None) -> bool:
    if isinstance(error, Poison):
        return False
    return is_transient is None or is_transient(error)


def _log(job_id: str, attempt: int, of: int, pause: float, error: Exception) -> None:
    import logging

    logging.getLogger(__name__).info(
        "job %s failed (%s: %s): retry %d of %d in %.1f s",
        *(job_id, type(error).__name__, error, attempt, of, pause),
    )
