"""Jobs that call a service which answers one call of twenty with HTTP status 429."""

from __future__ import annotations

import email.message
import random
import time
import urllib.error
from typing import Any

import sprat


def call(data: dict[str, Any]) -> None:
    """The error of the HTTP client is left to sprat to understand."""
    if _is_refused(data):
        headers = email.message.Message()
        headers["Retry-After"] = "1"
        raise urllib.error.HTTPError("http://service/", 429, "Too Many Requests", headers, None)


def call_by_hand(data: dict[str, Any]) -> None:
    """The job says itself when it is to be tried again."""
    if _is_refused(data):
        raise sprat.Transient("429", delay_seconds=1)


def _is_refused(data: dict[str, Any]) -> bool:
    """Take 0.05 to 0.5 s. The same calls take as long and are refused in every run."""
    item = sprat.current_job().item
    dice = random.Random(f"{data['n']} {item.given_back}")
    time.sleep(dice.uniform(0.05, 0.5))
    return dice.random() < 0.05
