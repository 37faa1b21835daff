"""The Lua scripts: each verb is one, made of files of the directory `lua`.

A script is sent by its digest, and as a whole to a server that does not know it yet.
"""

from __future__ import annotations

import os

from sprat.record import Record

BASE = ("base", "rows", "sums", "waking", "states")
CLAIMS = (*BASE, "claims")
WORKERS = (*BASE, "claims", "workers")
ALL = (*BASE, "lanes", "claims", "workers")

# What a verb needs before its own file. Every part costs a few microseconds a call.
PARTS = {
    "push": BASE,
    "push_one": ("base", "rows", "sums", "waking"),
    "exchange": ALL,
    "save": CLAIMS,
    "release": WORKERS,
    "steer": BASE,
    "item": BASE,
    "items": BASE,
    "counts": BASE,
    "look": ALL,
    "pool_state": (*BASE, "lanes"),
    "configure": BASE,
    "pause": BASE,
    "request_check": WORKERS,
    "purge": ALL,
    "register": WORKERS,
    "heartbeat": WORKERS,
    "update_status": WORKERS,
    "workers_list": WORKERS,
    "reap": WORKERS,
    "observe": (*ALL, "statistics"),
    "history": ("base", "statistics"),
    "record": WORKERS,
    "decisions": BASE,
    "document": ("base", "documents"),
    "documents_page": ("base", "documents"),
    "put": ("base", "documents"),
    "take": ("base",),
}
_loaded: dict[str, Script] = {}


class Script(Record):
    name: str
    text: str
    digest: str


def script(name: str) -> Script:
    if name not in _loaded:
        text = "\n".join(_file(part) for part in (*PARTS[name], name))
        _loaded[name] = Script(name=name, text=text, digest=sha1(text.encode()))
    return _loaded[name]


def _file(name: str) -> str:
    path = os.path.join(os.path.dirname(__file__), "lua", name + ".lua")
    with open(path, encoding="utf-8") as file:
        return file.read()


def sha1(data: bytes) -> str:
    try:
        from _sha1 import sha1 as digest_of  # type: ignore[import-not-found]  # hashlib: 5 ms
    except ImportError:
        from hashlib import sha1 as digest_of
    return str(digest_of(data, usedforsecurity=False).hexdigest())
