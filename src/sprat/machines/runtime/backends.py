"""The store that a machine's `settings.backends` names, as a URL."""

from __future__ import annotations

import os

from sprat.core.errors import InvalidInput
from sprat.machines.definition import Machine

DEFAULT_FILE = "sprat.db"


def url_of(machine: Machine) -> str | None:
    """None when it names no store. A relative path is beside the machine's file."""
    backends = machine.settings.backends
    kind = backends.work or backends.registration
    path = backends.work_path or backends.registration_path
    if kind is None and path is None:
        return None
    if kind == "memory":
        return "memory://"
    if path is not None and "://" in path:
        return path
    if kind not in (None, "sqlite"):
        raise InvalidInput(f"{machine.name}: backends of kind {kind} need their URL as work_path")
    directory = os.path.dirname(os.path.abspath(machine.path)) if machine.path else os.getcwd()
    place = os.path.normpath(os.path.join(directory, path or DEFAULT_FILE))
    os.makedirs(os.path.dirname(place), exist_ok=True)
    return f"sqlite:///{place}"
