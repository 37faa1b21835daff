"""Checks the tree of a machine's file: every key, what it may be, and one sentence with the place
when it is something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sprat.config.yaml_tree import Leaf
from sprat.core.did_you_mean import did_you_mean
from sprat.machines import template
from sprat.machines.checks import Checks, either, is_path
from sprat.machines.definition import (
    ISOLATIONS,
    BackendSettings,
    Machine,
    MachineSettings,
    MachineState,
    Transition,
)

SPEC = "flatmachine"
TOP = ("spec", "spec_version", "data", "metadata")
DATA = ("name", "context", "settings", "hooks", "actions", "machines", "states")
SETTINGS = ("heartbeat_interval", "worker_pool", "backends", "isolation", "max_steps")
BACKENDS = ("registration", "work", "registration_path", "work_path")
KINDS_OF_BACKEND = ("sqlite", "memory", "redis", "postgresql")
TYPES = ("initial", "final")
STATE = (
    *("type", "action", "machine", "launch", "wait", "foreach", "as", "key", "input"),
    *("launch_input", "output", "output_to_context", "transitions", "on_error", "timeout"),
)
EVENTS = (
    *("on_machine_start", "on_state_enter", "on_state_exit", "on_transition"),
    *("on_action", "on_error", "on_machine_end"),
)
NAMES = frozenset(("context", "input", "output"))  # what templates call them already
MAX_STATES = 1_000
WORK = ("action", "machine", "launch", "wait")


def checked(tree: Leaf, path: str, name: str) -> Machine:
    """The machine that a tree describes, or InvalidInput; `name` if it has none of its own."""
    return _Schema(path).machine(tree, name)


class _Schema(Checks):
    # -- the file ---------------------------------------------------------------------------

    def machine(self, tree: Leaf, name: str) -> Machine:
        top = self.mapping(tree, "the file", TOP)
        if "spec" in top and top["spec"].value != SPEC:
            self.refuse(top["spec"], f"spec must be {SPEC}, not {top['spec'].said()}")
        if "spec_version" in top:
            self.text(top["spec_version"], "spec_version")
        if "data" not in top:
            self.refuse(tree, "data is missing: it holds the machine")
        data = self.mapping(top["data"], "data", DATA)
        if "states" not in data:
            self.refuse_key(top["data"], "data.states is missing")
        states = self._states(data["states"])
        return Machine(
            name=self.text(data["name"], "data.name") if "name" in data else name,
            path=self._path,
            context=self.templates(data, "context", "data"),
            settings=self._settings(data),
            hooks=self._hooks(data["hooks"]) if "hooks" in data else None,
            actions=self._paths(data, "actions", is_function=True),
            machines=self._paths(data, "machines", is_function=False),
            states=states,
            initial=next(state.name for state in states.values() if state.is_initial),
        )

    def _settings(self, data: dict[str, Leaf]) -> MachineSettings:
        if "settings" not in data:
            return MachineSettings()
        given = self.mapping(data["settings"], "data.settings", SETTINGS)
        checks: dict[str, Callable[[Leaf, str], Any]] = {
            "heartbeat_interval": self.seconds,
            "worker_pool": self.text,
            "backends": self._backends,
            "isolation": lambda leaf, what: self.one_of(leaf, what, ISOLATIONS),
            "max_steps": self.count,
        }
        return MachineSettings(**{key: checks[key](leaf, key) for key, leaf in given.items()})

    def _backends(self, leaf: Leaf, what: str) -> BackendSettings:
        given = self.mapping(leaf, what, BACKENDS)
        for key in ("registration", "work"):
            if key in given:
                self.one_of(given[key], f"backends.{key}", KINDS_OF_BACKEND)
        found = BackendSettings(**{key: self.text(one, key) for key, one in given.items()})
        one, other = found.registration_path, found.work_path
        if None not in (one, other) and one != other:
            why = "registration_path and work_path must be the same: workers and work are one store"
            self.refuse(given["work_path"], why)
        if None not in (found.registration, found.work) and found.registration != found.work:
            self.refuse(given["work"], "registration and work must be the same kind of store")
        return found

    def _hooks(self, leaf: Leaf) -> Any:
        if isinstance(leaf.value, str):
            return self.text(leaf, "hooks")
        given = self.mapping(leaf, "hooks", (*EVENTS, "name", "args"))
        for key, inner in given.items():
            if key == "args":
                self.mapping(inner, "hooks.args")
            else:
                self.text(inner, f"hooks.{key}")
        return leaf.plain()

    def _paths(self, data: dict[str, Leaf], key: str, *, is_function: bool) -> dict[str, str]:
        if key not in data:
            return {}
        found = {}
        for name, leaf in self.mapping(data[key], key).items():
            found[name] = path = self.text(leaf, f"{key}.{name}")
            if is_function and not is_path(path):
                self.refuse(leaf, f"{key}.{name} must be module:function, not {path!r}")
        return found

    # -- states -----------------------------------------------------------------------------

    def _states(self, leaf: Leaf) -> dict[str, MachineState]:
        given = self.mapping(leaf, "data.states")
        if not given:
            self.refuse_key(leaf, "data.states has no state")
        if len(given) > MAX_STATES:
            self.refuse(leaf, f"a machine has at most {MAX_STATES:,} states")
        states = {name: self._state(name, inner, given) for name, inner in given.items()}
        first = [name for name, state in states.items() if state.is_initial]
        if not first:
            self.refuse_key(leaf, "no state is the initial one: give one `type: initial`")
        if len(first) > 1:
            self.refuse_key(given[first[1]], f"{first[0]} is the initial state already")
        return states

    def _state(self, name: str, leaf: Leaf, states: dict[str, Leaf]) -> MachineState:
        where = f"states.{name}"
        given = self.mapping(leaf, where, STATE)
        kind = self.one_of(given["type"], f"{where}.type", TYPES) if "type" in given else ""
        self._check_work(given, leaf, where)
        is_final = kind == "final"
        if is_final and "transitions" in given:
            self.refuse_key(given["transitions"], f"{where} is final: it has no transitions")
        if not is_final and "transitions" not in given:
            self.refuse_key(leaf, f"{where}.transitions is missing: where does it go from here?")
        if not is_final and "output" in given:
            self.refuse_key(given["output"], f"{where} is not final: it has no output")
        return MachineState(
            name=name,
            is_initial=kind == "initial",
            is_final=is_final,
            action=self.word(given, "action", where),
            machine=self.word(given, "machine", where),
            launch=self.word(given, "launch", where),
            wait=self.moment(given, "wait", where),
            foreach=self._elements(given, where),
            as_name=self._as(given, where),
            key=self.value(given["key"], f"{where}.key") if "key" in given else None,
            input=self.templates(given, "input", where),
            launch_input=self.templates(given, "launch_input", where),
            output=self.tree(given["output"], f"{where}.output") if "output" in given else None,
            output_to_context=self.templates(given, "output_to_context", where),
            transitions=self._transitions(given, where, states),
            on_error=self._on_error(given, where, states),
            timeout=self.moment(given, "timeout", where),
        )

    def _check_work(self, given: dict[str, Leaf], leaf: Leaf, where: str) -> None:
        work = [key for key in WORK if key in given]
        if len(work) > 1:
            self.refuse_key(given[work[1]], f"{where} has {work[0]} already: one of {either(WORK)}")
        if "foreach" in given and (not work or work == ["wait"]):
            why = f"{where}.foreach needs an action, a machine or a launch for each element"
            self.refuse_key(given["foreach"], why)
        if "launch_input" in given and work != ["launch"]:
            self.refuse_key(given["launch_input"], f"{where}.launch_input is for a launch")
        if "input" in given and work not in (["action"], ["machine"]):
            self.refuse_key(given["input"], f"{where}.input is for an action or a machine")
        for key in ("as", "key"):
            if key in given and "foreach" not in given:
                self.refuse_key(given[key], f"{where}.{key} is for foreach")

    def _elements(self, given: dict[str, Leaf], where: str) -> Any:
        if "foreach" not in given:
            return None
        leaf = given["foreach"]
        found = self.tree(leaf, f"{where}.foreach")
        if not isinstance(found, list | template.Template):
            self.refuse(leaf, f"{where}.foreach must be a list or a template, not {leaf.said()}")
        return found

    def _as(self, given: dict[str, Leaf], where: str) -> str:
        if "as" not in given:
            return "item"
        name = self.text(given["as"], f"{where}.as")
        if not name.isidentifier() or name.startswith("_") or name in NAMES:
            self.refuse(given["as"], f"{where}.as must be a name of your own, not {name!r}")
        return name

    def _transitions(
        self, given: dict[str, Leaf], where: str, states: dict[str, Leaf]
    ) -> tuple[Transition, ...]:
        if "transitions" not in given:
            return ()
        leaf = given["transitions"]
        if not isinstance(leaf.value, list) or not leaf.value:
            self.refuse(leaf, f"{where}.transitions must be a list of `- to: STATE`")
        return tuple(self._transition(one, where, states) for one in leaf.value)

    def _transition(self, leaf: Leaf, where: str, states: dict[str, Leaf]) -> Transition:
        given = self.mapping(leaf, f"{where}.transitions", ("to", "condition"))
        if "to" not in given:
            self.refuse(leaf, f"{where}.transitions: `to` is missing")
        to = self._target(given["to"], f"{where}.transitions.to", states)
        if "condition" not in given:
            return Transition(to=to)
        condition = given["condition"]
        source = condition.value
        if isinstance(source, bool):
            source = str(source)
        if not isinstance(source, str) or not source.strip():
            self.refuse(condition, f"{where}: a condition is an expression, not {condition.said()}")
        made = self.compiled(condition, f"{where}.condition", template.condition, source)
        return Transition(to=to, condition=made)

    def _on_error(
        self, given: dict[str, Leaf], where: str, states: dict[str, Leaf]
    ) -> dict[str, str]:
        if "on_error" not in given:
            return {}
        leaf = given["on_error"]
        if not isinstance(leaf.value, dict):
            return {"default": self._target(leaf, f"{where}.on_error", states)}
        return {
            kind: self._target(inner, f"{where}.on_error.{kind}", states)
            for kind, inner in leaf.value.items()
        }

    def _target(self, leaf: Leaf, what: str, states: dict[str, Leaf]) -> str:
        name = self.text(leaf, what)
        if name not in states:
            self.refuse(leaf, f"{what}: there is no state {name!r}{did_you_mean(name, states)}")
        return name
