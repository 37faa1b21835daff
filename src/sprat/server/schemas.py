"""Shapes of what travels as JSON: checked on the way in, and described in the OpenAPI document.

The shapes of records and verbs are taken from their annotations, so a field that is added to a
record or a verb is served, checked and documented without another line.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from sprat.core import model
from sprat.core.record import Record
from sprat.store import backend

# A JSON number beyond these is not the same number in every language.
Whole = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
Real = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]

Reader = Callable[[Any], Any]
_TURNED = (list, msgspec.Struct)
_NAMES = {**vars(model), **vars(backend), "Any": Any, "Mapping": Mapping, "Sequence": Sequence}


@cache
def of_record(record: type[Record]) -> type[msgspec.Struct]:
    """The JSON object that has a record's fields."""
    hints = get_type_hints(record, globalns=_NAMES)
    fields = [_field(name, hints[name], record._defaults) for name in record._names]
    return msgspec.defstruct(record.__name__, fields, kw_only=True)


@cache
def of_verb(verb: Callable[..., Any]) -> type[msgspec.Struct]:
    """The JSON object that has a verb's parameters."""
    hints = get_type_hints(verb, globalns=_NAMES)
    parameters = list(inspect.signature(verb).parameters.values())[1:]
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    for parameter in parameters:  # what may be null may be left out
        if NoneType in get_args(hints[parameter.name]):
            defaults.setdefault(parameter.name, None)
    fields = [_field(p.name, hints[p.name], defaults) for p in parameters]
    name = "".join(word.title() for word in verb.__name__.split("_"))
    return msgspec.defstruct(f"{name}Verb", fields, kw_only=True, forbid_unknown_fields=True)


def of_answer(verb: Callable[..., Any]) -> Any:
    """The type of a verb's answer."""
    return of(get_type_hints(verb, globalns=_NAMES)["return"])


def of(hint: Any) -> Any:
    """A type as it is in JSON."""
    origin, inner = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Record):
        return of_record(hint)
    if hint is int:
        return Whole
    if hint is float:
        return Real
    if hint is object:
        return Any
    if origin in (Union, UnionType):
        return Union[tuple(of(one) for one in inner)]  # noqa: UP007 - made at run time
    if origin in (tuple, list, Sequence):
        return list[of(inner[0])]  # type: ignore[misc]  # made at run time
    if origin in (dict, Mapping):
        return dict[str, of(inner[1])]  # type: ignore[misc]  # made at run time
    return hint


@cache
def readers(verb: Callable[..., Any]) -> dict[str, Reader]:
    """For each parameter of a verb, what turns checked JSON into what the core uses."""
    hints = get_type_hints(verb, globalns=_NAMES)
    return {name: reader(hint) or _as_it_is for name, hint in hints.items() if name != "return"}


@cache
def reader(hint: Any) -> Reader | None:
    """Turns structs into records and lists into tuples; None: there is nothing to turn."""
    inner = get_args(hint)
    if isinstance(hint, type) and issubclass(hint, Record):
        return _record_reader(hint)
    if get_origin(hint) in (tuple, list, Sequence):
        one = reader(inner[0])
        return tuple if one is None else lambda given: tuple([one(each) for each in given])
    if get_origin(hint) in (Union, UnionType):
        turn = next(filter(None, map(reader, inner)), None)
        if turn is not None:
            return lambda given: turn(given) if isinstance(given, _TURNED) else given
    return None


def _record_reader(kind: type[Record]) -> Reader:
    hints = get_type_hints(kind, globalns=_NAMES)
    turns = [reader(hints[name]) for name in kind._names]
    if not any(turns):
        return lambda given: kind.of(msgspec.structs.astuple(given))
    each = [turn or _as_it_is for turn in turns]
    return lambda given: kind.of(
        [turn(one) for turn, one in zip(each, msgspec.structs.astuple(given), strict=True)]
    )


def _as_it_is(given: Any) -> Any:
    return given


def _field(name: str, hint: Any, defaults: Mapping[str, Any]) -> Any:
    if name not in defaults:
        return (name, of(hint))
    default = defaults[name]
    if isinstance(default, tuple | list):
        return (name, of(hint), msgspec.field(default_factory=list))
    if isinstance(default, Mapping):
        return (name, of(hint), msgspec.field(default_factory=dict))
    return (name, of(hint), default)
