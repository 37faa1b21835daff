"""A machine's hooks, from what its file or the caller says: a class, an object, or functions."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from sprat.core.coroutines import outcome
from sprat.core.errors import InvalidInput
from sprat.machines.checks import is_path
from sprat.machines.definition import Machine
from sprat.machines.schema import EVENTS
from sprat.machines.stepping import Hooks
from sprat.worker.handlers import find


class Bound(Hooks):
    """Calls what the user gave for each event, if anything; coroutines are run to their end."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        for event, function in functions.items():
            setattr(self, event, _calling(function))

    def has(self, event: str) -> bool:
        return event in vars(self)


def bound(machine: Machine, registered: Mapping[str, Any] | None = None) -> Bound:
    """The hooks of a machine. A name without a colon is one of those that were registered."""
    asked, known = machine.hooks, registered or {}
    if asked is None:
        return Bound({})
    enter_directory(machine)
    if isinstance(asked, str):
        return Bound(_events(_made(asked, {}, known)))
    functions = {event: find(path) for event, path in asked.items() if event in EVENTS}
    if "name" in asked:
        functions |= _events(_made(asked["name"], asked.get("args") or {}, known))
    return Bound(functions)


def of_object(hooks: Any) -> Bound:
    """Hooks that were given in Python: an object, or a mapping from event to function."""
    return Bound(hooks if isinstance(hooks, dict) else _events(hooks))


def enter_directory(machine: Machine) -> None:
    """Let the user's modules beside a machine's file be imported."""
    directory = os.path.dirname(os.path.abspath(machine.path)) if machine.path else os.getcwd()
    if directory not in sys.path:
        sys.path.insert(0, directory)


def _made(name: str, options: Mapping[str, Any], known: Mapping[str, Any]) -> Any:
    if name in known:
        thing = known[name]
    elif is_path(name):
        thing = find(name)
    else:
        raise InvalidInput(f"there are no hooks {name!r}: write module:Class, or register them")
    return thing(**options) if isinstance(thing, type) or _is_factory(thing) else thing


def _is_factory(thing: Any) -> bool:
    return callable(thing) and not any(hasattr(thing, event) for event in EVENTS)


def _events(hooks: Any) -> dict[str, Any]:
    """The methods that are the user's own: the base class does nothing."""
    own = {event: getattr(hooks, event, None) for event in EVENTS}
    base = {event: getattr(Hooks, event) for event in EVENTS}
    return {
        event: method
        for event, method in own.items()
        if callable(method) and getattr(method, "__func__", method) is not base[event]
    }


def _calling(function: Any) -> Any:
    return lambda *values: outcome(function(*values))
