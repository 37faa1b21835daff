"""Records out of the JSON of an orchestrator's answers, by the annotations of verbs and records.

Fields that only a newer orchestrator knows are left out, those that an older one does not know are
at their defaults. The annotations are texts here: `typing` costs a worker more than its imports.
"""

from __future__ import annotations

from sprat.core import model
from sprat.core.record import Record
from sprat.store.backend import Backend

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Reader = Callable[[Any], Any]

_readers: dict[str, Reader | None] = {}  # by annotation
_answers: dict[str, Reader | None] = {}  # by verb


def answer(verb: str, value: Any) -> Any:
    """The answer of a verb, as its annotation says."""
    if verb not in _answers:
        _answers[verb] = reader(getattr(Backend, verb).__annotations__["return"])
    read = _answers[verb]
    return value if read is None or value is None else read(value)


def reader(annotation: str) -> Reader | None:
    """What turns JSON into values of this annotation; None: nothing has to be turned."""
    if annotation not in _readers:
        _readers[annotation] = _made(annotation.removesuffix(" | None").removeprefix("model."))
    return _readers[annotation]


def _made(annotation: str) -> Reader | None:
    outer, bracket, inner = annotation.partition("[")
    if bracket and outer in ("list", "tuple", "Sequence"):
        read = reader(inner.removesuffix("]").removesuffix(", ..."))
        make = list if outer == "list" else tuple
        return make if read is None else lambda values: make([read(value) for value in values])
    kind = getattr(model, annotation, None)
    if isinstance(kind, type) and issubclass(kind, Record):
        return _record_reader(kind)
    return None


def _record_reader(kind: type[Record]) -> Reader:
    names = kind._names
    annotations = kind.__annotations__
    readers = [(name, read) for name in names if (read := reader(annotations[name])) is not None]

    def record(fields: dict[str, Any]) -> Record:
        for name, read in readers:
            if fields.get(name) is not None:
                fields[name] = read(fields[name])
        if tuple(fields) == names:
            return kind.of(fields.values())
        return kind(**{name: value for name, value in fields.items() if name in names})

    return record
