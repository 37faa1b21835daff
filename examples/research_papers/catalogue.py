"""A library's catalogue, as unreliable as real ones: some look-ups are refused, and work later.

Which ones is written down (papers/catalogue.json), so that every run of the example is the same.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import prose

import sprat

PAUSE_SECONDS = 0.2  # that a refused look-up asks for


class UnknownPaper(Exception):
    """The catalogue does not have it; analyze.yml goes on without."""


def look_up(given: dict[str, Any]) -> dict[str, Any]:
    entries = json.loads((prose.HERE / "papers" / "catalogue.json").read_text())
    if given["name"] not in entries:
        raise UnknownPaper(given["name"])
    entry: dict[str, Any] = entries[given["name"]]
    if refused_so_far() < entry.pop("refusals"):
        raise sprat.Transient("the catalogue is busy", delay_seconds=PAUSE_SECONDS)
    return entry


def refused_so_far() -> int:
    """How often this job was sent away already."""
    try:
        return sprat.current_job().item.given_back
    except sprat.SpratError:
        return sys.maxsize  # run by hand: nobody would try again
