"""A machine as it was loaded: states and the ways between them. All templates are compiled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sprat.core.record import Record
from sprat.machines.template import Template

ISOLATIONS = ("process", "none")


class Transition(Record):
    """A way out of a state; without a condition it is always open."""

    to: str
    condition: Template | None = None


class MachineState(Record):
    """What is done in a state, and where it leads. `Any` may hold templates."""

    name: str
    is_initial: bool = False
    is_final: bool = False
    action: str | None = None
    machine: str | None = None
    launch: str | None = None
    wait: Any = None
    foreach: Any = None
    as_name: str = "item"
    key: Any = None
    input: Any = None
    launch_input: Any = None
    output: Any = None
    output_to_context: Mapping[str, Any] = {}
    transitions: Sequence[Transition] = ()
    on_error: Mapping[str, str] = {}  # by the name of the error, or "default"
    timeout: Any = None

    @property
    def kind(self) -> str:
        """The word for what the state does."""
        for kind in ("wait", "launch", "machine", "action"):
            if getattr(self, kind) is not None:
                return kind
        return "final" if self.is_final else "pass"


class BackendSettings(Record):
    """Where the machine's store is, as the source document writes it."""

    registration: str | None = None
    work: str | None = None
    registration_path: str | None = None
    work_path: str | None = None


class MachineSettings(Record):
    """What a machine asks of whoever runs it."""

    heartbeat_interval: float | None = None  # seconds; it is registered as a worker, and beats
    worker_pool: str | None = None  # the pool it works for; else `pool_id` of its input
    backends: BackendSettings = BackendSettings()
    isolation: str = "process"  # where a worker runs its actions: in a child, or "none": itself
    max_steps: int | None = None  # states that one run may pass through


class Machine(Record):
    """A checked machine. `path` is its file, or "" for one that was given as a text."""

    name: str
    path: str
    context: Mapping[str, Any]
    settings: MachineSettings
    hooks: Mapping[str, Any] | str | None
    actions: Mapping[str, str]
    machines: Mapping[str, str]
    states: Mapping[str, MachineState]
    initial: str
