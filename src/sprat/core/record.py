"""Frozen, keyword-only records: what a dataclass gives, without its 20 ms of imports.

Workers are short-lived, so start-up is paid once per job, and a claim builds a record per item: a
record is a tuple underneath, made in one step from a row. Type checkers see frozen keyword-only
dataclasses. docs/decisions/0002-records.md has the figures.
"""

from __future__ import annotations

from operator import itemgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Self, dataclass_transform
else:

    def dataclass_transform(**_: object):
        return lambda thing: thing


_make = tuple.__new__


@dataclass_transform(frozen_default=True, kw_only_default=True, eq_default=True)
class RecordType(type):
    """Turns the annotated names of a class body into fields, and their values into defaults."""

    _names: tuple[str, ...]
    _defaults: dict[str, object]

    def __new__(cls, name: str, bases: tuple[type, ...], body: dict[str, Any]) -> RecordType:
        names = tuple(n for n in body.get("__annotations__", {}) if not n.startswith("_"))
        defaults = {n: body.pop(n) for n in names if n in body}
        for place, field in enumerate(names):
            body[field] = property(itemgetter(place))
        body["__slots__"] = ()
        record_class = super().__new__(cls, name, bases, body)
        record_class._names = names
        record_class._defaults = defaults
        return record_class


class Record(tuple, metaclass=RecordType):  # type: ignore[type-arg]  # tuple[Any] needs typing
    """A value: compared by its fields, never changed, copied with `replace`."""

    def __new__(cls, **values: Any) -> Self:
        names = cls._names
        if len(values) != len(names):
            values = {**cls._defaults, **values}
        if len(values) == len(names):
            try:
                return _make(cls, [values[name] for name in names])
            except KeyError:
                pass
        unknown = sorted(values.keys() - set(names))
        missing = sorted(set(names) - values.keys() - cls._defaults.keys())
        wrong = f"has no {', '.join(unknown)}" if unknown else f"needs {', '.join(missing)}"
        raise TypeError(f"{cls.__name__} {wrong}")

    if TYPE_CHECKING:

        @classmethod
        def of(cls, values: Iterable[Any]) -> Self:
            """A record from all its values in the order of the fields, unchecked."""
    else:
        of = classmethod(_make)  # in C throughout: it is called several times a job

    def as_dict(self) -> dict[str, Any]:
        return dict(zip(type(self)._names, self, strict=True))

    def replace(self, **changes: Any) -> Self:
        return type(self)(**{**self.as_dict(), **changes})

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and tuple.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return tuple.__hash__(self)

    def __repr__(self) -> str:
        shown = ", ".join(
            f"{name}={value!r}"
            for name, value in self.as_dict().items()
            if value is not None and name != "token"  # a token is a capability: keep it out of logs
        )
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return _rebuild, (type(self), tuple(self))


def plain(value: Any) -> Any:
    """A value with its records as dictionaries, ready for JSON. Records are tuples and come in
    lists and tuples of sprat's own; a user's payload has neither."""
    kind = type(value)
    if kind is list or kind is tuple:
        return [plain(element) for element in value]
    if not isinstance(value, Record):
        return value
    fields = dict(zip(kind._names, value, strict=True))
    for field in value:
        if isinstance(field, tuple):
            return {name: plain(field) for name, field in fields.items()}
    return fields


def _rebuild(cls: type[Record], values: tuple[object, ...]) -> Record:
    return cls.of(values)
