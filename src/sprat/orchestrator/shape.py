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

from sprat import backend, model
from sprat.record import Record

# A JSON number beyond these is not the same number in every language.
Whole = Annotated[int, msgspec.Meta(ge=-(2**53), le=2**53)]
Real = Annotated[float, msgspec.Meta(ge=-1e15, le=1e15)]

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


def plain(value: Any) -> Any:
    """A value with its records as dictionaries, ready for JSON."""
    if isinstance(value, Record):
        names = type(value)._names
        return {name: plain(field) for name, field in zip(names, value, strict=True)}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def record_from(kind: type[Record], given: msgspec.Struct) -> Any:
    """The record that a checked JSON object stands for."""
    hints = get_hints(kind)
    return kind.of([back(hints[name], getattr(given, name)) for name in kind._names])


@cache
def get_hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind, globalns=_NAMES)


def back(hint: Any, value: Any) -> Any:
    """A checked JSON value as the type that the core uses."""
    if isinstance(value, msgspec.Struct):
        return record_from(_record_in(hint), value)
    if isinstance(value, list):
        inner = [arg for arg in _arguments(hint) if arg is not Ellipsis]
        return tuple(back(inner[0] if inner else Any, one) for one in value)
    return value


def _record_in(hint: Any) -> type[Record]:
    kinds = [hint, *get_args(hint)]
    return next(k for k in kinds if isinstance(k, type) and issubclass(k, Record))


def _arguments(hint: Any) -> tuple[Any, ...]:
    """What a sequence is of, also when it may be something else."""
    if get_origin(hint) in (Union, UnionType):
        return next((get_args(h) for h in get_args(hint) if get_args(h)), ())
    return get_args(hint)


def _field(name: str, hint: Any, defaults: Mapping[str, Any]) -> Any:
    if name not in defaults:
        return (name, of(hint))
    default = defaults[name]
    if isinstance(default, tuple | list):
        return (name, of(hint), msgspec.field(default_factory=list))
    if isinstance(default, Mapping):
        return (name, of(hint), msgspec.field(default_factory=dict))
    return (name, of(hint), default)
