"""The Lua scripts: each verb is one, made of files of the directory `lua`.

A script is sent by its digest, and as a whole to a server that does not know it yet.
"""

from __future__ import annotations

import os

from sprat.core import histogram
from sprat.core.record import Record

BASE = ("base", "rows", "buckets", "sums", "waking", "states")
CLAIMS = (*BASE, "parking", "claims")
ITEMS = (*CLAIMS, "lanes", "workers")
WORKERS = (*CLAIMS, "crashes", "workers", "fleet")
ALL = (*WORKERS, "lanes")
MARKED = ("base", "workers", "marks")

# What a verb needs before its own file. Every part costs a few microseconds a call: its functions
# are made anew each time.
PARTS: dict[str, tuple[str, ...]] = {
    "format": (),
    "migrate": WORKERS,
    "push": BASE,
    "push_one": ("base", "rows", "buckets", "waking"),
    "exchange": ITEMS,
    "exchange_marked": (*ITEMS, "marks"),
    "save": CLAIMS,
    "release": WORKERS,
    "steer": (*BASE, "parking"),
    "lost": CLAIMS,
    "item": BASE,
    "pools_of": BASE,
    "items": BASE,
    "counts": BASE,
    "look": ITEMS,
    "pool_state": (*BASE, "lanes", "pausing"),
    "configure": BASE,
    "pause": BASE,
    "request_check": (*WORKERS, "marks"),
    "begin_check": MARKED,
    "touch": MARKED,
    "keep_alive": MARKED,
    "purge": (*BASE, "lanes"),
    "delete_pool": BASE,
    "register": (*WORKERS, "marks"),
    "heartbeat": (*WORKERS, "marks"),
    "update_status": (*WORKERS, "marks"),
    "workers_list": WORKERS,
    "reap": (*WORKERS, "marks"),
    "observe": (*ALL, "statistics", "pausing"),
    "history": ("base", "buckets", "sums", "statistics"),
    "totals": ("base", "buckets", "sums", "statistics"),
    "record": (*WORKERS, "marks"),
    "decisions": BASE,
    "document": ("base", "documents"),
    "documents_page": ("base", "documents"),
    "put": ("base", "documents"),
    "take": ("base",),
}
_loaded: dict[str, Script] = {}
_files: dict[str, str] = {}
_numbers: dict[str, str] = {}


class Script(Record):
    name: str
    text: str
    digest: str


def script(name: str) -> Script:
    if name not in _loaded:
        text = "\n".join(_file(part) for part in (*PARTS[name], name.removesuffix("_marked")))
        _loaded[name] = Script(name=name, text=text, digest=sha1(text.encode()))
    return _loaded[name]


def _file(name: str) -> str:
    if name not in _files:
        path = os.path.join(os.path.dirname(__file__), "lua", name + ".lua")
        with open(path, encoding="utf-8") as file:
            _files[name] = numbered(file.read().replace("{edges}", edges()))
    return _files[name]


def edges() -> str:
    """Where bins end, for sums.lua."""
    return "".join(f"{round(1000 * seconds):8d}" for seconds in histogram.ROUND)


def numbered(text: str) -> str:
    """A script with the numbers of places in rows for their names: `item[SEQ]` becomes `item[1]`.
    Every name that a function uses costs each call of the script that makes the function."""
    for line in text.splitlines():
        if line.startswith("local ") and line[6:8].isupper():
            names, _, values = line[6:].partition(" = ")
            numbers = values.partition(" --")[0].split(", ")
            if all(number.isdigit() for number in numbers):
                _numbers.update(zip(names.split(", "), numbers, strict=True))
    first, *pieces = text.split("[")
    for place, piece in enumerate(pieces):
        name, _, rest = piece.partition("]")
        if name in _numbers:
            pieces[place] = f"{_numbers[name]}]{rest}"
    return "[".join([first, *pieces])


def sha1(data: bytes) -> str:
    try:
        from _sha1 import sha1 as digest_of  # type: ignore[import-not-found]  # hashlib: 5 ms
    except ImportError:
        from hashlib import sha1 as digest_of
    return str(digest_of(data, usedforsecurity=False).hexdigest())
