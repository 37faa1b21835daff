"""Keeps the position of a run in the store, so that another process can go on from there.

Each save is a compare-and-set on the version: of two processes that run the same execution, the one
that took it last goes on, and the other one stops at its next state.
"""

from __future__ import annotations

from typing import Any

from sprat.core import jsontext, payload
from sprat.core.errors import InvalidInput, SpratError
from sprat.machines.definition import Machine
from sprat.machines.stepping import Position
from sprat.store.store import Store

KIND = "machine-run"
KEEP_SECONDS = 7 * 86400.0


class TakenOver(SpratError):
    """Another process runs this execution now."""


class Checkpoints:
    """The document of one execution."""

    def __init__(self, store: Store, execution_id: str) -> None:
        self._store = store
        self._id = payload.worker_id(execution_id)
        self._version = 0
        found = store.backend.document(KIND, self._id)
        self._found: dict[str, Any] | None = None
        if found is not None:
            self._version = found.version
            self._found = jsontext.loads(found.body)

    def new(self, machine: Machine) -> dict[str, Any]:
        """Nothing, for a run that begins; InvalidInput if its id was used already."""
        if self._found is not None:
            raise InvalidInput(
                f"execution {self._id} of {self._found.get('machine', machine.name)} is known "
                f"already: --resume goes on with it, another id begins anew"
            )
        return {}

    def resumed(self, machine: Machine) -> dict[str, Any]:
        """What was kept of a run of this machine; InvalidInput if there was none."""
        if self._found is None:
            raise InvalidInput(
                f"there is no execution {self._id} to resume: without --resume it begins"
            )
        name = self._found.get("machine", machine.name)
        if name != machine.name:
            raise InvalidInput(f"execution {self._id} is one of {name}, not of {machine.name}")
        return self._found

    def save(self, position: Position) -> None:
        self._put(position.as_dict())

    def finish(self, machine: Machine, output: Any) -> None:
        """Keep the output instead, for whoever asks again."""
        self._put({"machine": machine.name, "output": output})

    def _put(self, body: dict[str, Any]) -> None:
        text = payload.encode(body, "position")
        if not self._store.backend.put(KIND, self._id, text, self._version, KEEP_SECONDS):
            raise TakenOver(f"execution {self._id} is run by another process now")
        self._version += 1
