"""Odd values in every field, over every store: stored as they are or refused, never a bug."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from houses import Client, Reply
from servers.orchestrator import serving
from worlds import World

TEXTS = (
    "\0",
    "a\0b",
    "\ud7ff",
    "\U0010ffff",
    "\ue000",
    "'; DROP TABLE pool; --",
    "%",
    "\\",
    "\x7f",
)
NUMBERS = (0, 1e-300, 5e-324, 1e-9, 0.1, 3.15e8, 315_360_000, 1e15, -1)
POOL = "/api/v1/pools/p"


def requests(text: str) -> list[tuple[str, str, Any]]:
    """Requests with this text wherever a text may be."""
    decision = {
        "pool": "p",
        "policy": text,
        "direction": "up",
        "reason": text,
        "current": 0,
        "desired": 0,
        "launch": 0,
        "max_workers": 1,
        "start_deadline_seconds": 60,
        "inputs": {text: text},
    }
    about = {"worker_id": "w", "metadata": {text: text}, "host": text}
    labels = {"data": 1, "group": f"g{text}", "tenant": text, "key": text}
    verbs: dict[str, dict[str, Any]] = {
        "record": {"version": 0, "decision": decision},
        "put": {"kind": "scaling", "name": text, "body": text},
        "documents": {"kind": "scaling", "limit": 1, "after": text},
        "items": {"pool": "p", "limit": 1, "after": text},
        "worker": {"worker_id": text},
        "observe": {"pool": "p", "group": text, "window": 1},
        "take": {"name": text, "amount": 1, "rate": 1, "burst": 1},
    }
    return [
        ("POST", f"{POOL}/jobs", {"data": {text: text}}),
        ("POST", f"{POOL}/jobs", labels),
        ("POST", f"{POOL}/workers", about),
        ("PATCH", f"{POOL}/settings", {"settings": {"command": [text], "directory": text}}),
        *(("POST", f"/api/v1/store/{verb}", body) for verb, body in verbs.items()),
    ]


def numbered(number: float) -> list[tuple[str, str, Any]]:
    """Requests with this number wherever a number may be."""
    verbs: dict[str, dict[str, Any]] = {
        "take": {"name": "b", "amount": 1e9, "rate": number, "burst": 1},
        "observe": {"pool": "p", "window": number},
        "pause": {"pool": "p", "seconds": number},
        "hold_off": {"pool": "p", "seconds": number},
        "reap": {"pool": "p", "threshold": number},
        "register": {"worker": {"worker_id": "q", "lease_seconds": number}},
        "put": {"kind": "scaling", "name": "n", "body": "1", "seconds": number},
    }
    return [
        ("GET", f"{POOL}/stats?seconds={number}", None),
        ("GET", f"{POOL}/history?seconds={number}", None),
        ("POST", f"{POOL}/jobs", {"data": 1, "delay": number}),
        *(("POST", f"/api/v1/store/{verb}", body) for verb, body in verbs.items()),
    ]


def test_no_value_is_a_bug(world: World, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    with serving(world.open()) as served:
        ask = Client(served.port)
        sent = [one for text in TEXTS for one in requests(text)]
        sent += [one for number in NUMBERS for one in numbered(number)]
        for method, path, body in sent:
            reply: Reply = ask(method, path, body, {"Sprat-Protocol": "2"})
            assert reply.status in (200, 404, 409, 422), (path, body, reply.body)
        assert ask("GET", "/metrics").status == 200
    assert "a bug" not in caplog.text
