"""Turns Python values into plain JSON values: dates, numpy numbers, dataclasses, models and others.

`payload.encode` calls it for values that are not plain JSON already, so a worker that stores only
plain JSON never imports this module. Types are recognized without importing their modules: a value
of a type exists only when the module of the type is imported.
"""

from __future__ import annotations

import sys

from sprat.core import jsontext
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

MAX_PATH_CHARS = 200  # a longer path is cut in its middle
KEEP_ELSEWHERE = "keep it elsewhere and send its address"
AS_TEXT = (("decimal", "Decimal"), ("uuid", "UUID"), ("pathlib", "PurePath"))
AS_ISO = (("datetime", "date"), ("datetime", "time"))  # a datetime is a date


def dumps(value: object, what: str, *, max_elements: int, max_depth: int) -> str:
    """The value as JSON text of dicts, lists, texts, finite numbers, True, False and None.

    Raises InvalidInput, which names the place of the first value that has no JSON form. `what` is
    what the caller calls the value. An array of more than `max_elements` is refused unread,
    and so is what is nested more than `max_depth` levels.
    """
    converter = _Converter(what.partition(" ")[0], max_elements, max_depth)
    try:
        return jsontext.dumps(converter.convert(value))
    except _Refused as refused:
        why = f"the {what} is not JSON: {converter.path()} {refused}"
    except RecursionError:
        where = f"or contains itself: {converter.path()}"
        why = f"the {what} is nested more than {max_depth} levels, {where}"
    except Exception as error:  # noqa: BLE001  (the value's own code raised it)
        where = f"{converter.path()} cannot be converted"
        why = f"the {what} is not JSON: {where}: {_line(error)}"
    raise InvalidInput(why)


class _Refused(Exception):
    """What is wrong with the value at the current place."""


class _Converter:
    """One conversion, with the place at which it is."""

    def __init__(self, root: str, max_elements: int, max_depth: int) -> None:
        self._root = root
        self._max_elements = max_elements
        self._max_depth = max_depth
        self._keys: list[object] = []  # of the containers around the current value

    def path(self) -> str:
        """The current place, for example `result["rows"][3]`, in one line of valid Unicode."""
        keys = (f"[{jsontext.dumps(key)}]" for key in self._keys)
        text = (self._root + "".join(keys)).encode("utf-8", "backslashreplace").decode()
        half = MAX_PATH_CHARS // 2
        return text if len(text) <= MAX_PATH_CHARS else f"{text[:half]} ... {text[-half:]}"

    def convert(self, value: Any) -> Any:
        if value is None or value is True or value is False:
            return value
        if _is_one(value, ("enum", "Enum")):
            return self.convert(value.value)
        if isinstance(value, str):
            return _valid(str.__str__(value))
        if isinstance(value, int):
            return _writable(int.__int__(value))
        if isinstance(value, float):
            return _finite(float.__float__(value))
        if isinstance(value, dict):
            return self._dict(value)
        if isinstance(value, list | tuple):
            return self._list(value)
        if isinstance(value, set | frozenset):
            return _sorted(self._list(value))
        return self.convert(self._simpler(value))

    def _dict(self, value: dict[Any, Any]) -> dict[str, Any]:
        self._check_depth()
        result: dict[str, Any] = {}
        for key, inner in value.items():
            name = self._key(key)
            if name in result:
                raise _Refused(f"has two keys that are stored as {jsontext.dumps(name)}")
            self._keys.append(name)
            result[name] = self.convert(inner)
            self._keys.pop()
        return result

    def _key(self, key: object) -> str:
        """The key as text; numbers, True, False and None as `json.dumps` writes them."""
        depth = len(self._keys)
        try:
            name = self.convert(key)
        except _Refused as refused:
            del self._keys[depth:]
            raise _Refused(f"has a key that {refused}") from None
        if isinstance(name, dict | list):
            raise _Refused(f"has a {type(key).__name__} as a key: use a text instead")
        return name if isinstance(name, str) else jsontext.dumps(name)

    def _list(self, values: Iterable[Any]) -> list[Any]:
        self._check_depth()
        result = []
        for at, inner in enumerate(values):
            self._keys.append(at)
            result.append(self.convert(inner))
            self._keys.pop()
        return result

    def _check_depth(self) -> None:
        if len(self._keys) >= self._max_depth:
            raise RecursionError

    def _simpler(self, value: Any) -> Any:
        """A value that is closer to JSON, and means the same."""
        kind = type(value)
        if _is_one(value, *AS_TEXT):
            return str(value)
        if _is_one(value, *AS_ISO):
            return _no_nat(value).isoformat()
        if _is_one(value, ("datetime", "timedelta")):
            return _no_nat(value).total_seconds()
        if hasattr(kind, "model_dump"):  # pydantic
            return value.model_dump(mode="json")
        if hasattr(kind, "__dataclass_fields__"):
            fields = sys.modules["dataclasses"].fields(value)
            return {field.name: getattr(value, field.name) for field in fields}
        if kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
            return self._from_numpy(value)
        raise _Refused(_why_not(value))

    def _from_numpy(self, value: Any) -> Any:
        """An array as lists, a scalar as a number, a text or a time."""
        if value.size > self._max_elements:
            raise _Refused(f"has {value.size:,} elements, too many to be stored: {KEEP_ELSEWHERE}")
        kind = value.dtype.kind
        if kind in "mM" and value.ndim:
            return list(value)
        if kind == "M":  # item() would be a number of nanoseconds
            return str(_no_nat(value))
        if kind == "m":
            return float(value / value.dtype.type(1, "s"))
        if kind == "f" and value.itemsize > 8:  # item() would be the same value again
            value = value.astype(float)
        return value.tolist()


def _is_one(value: object, *kinds: tuple[str, str]) -> bool:
    """Whether the value is of one of these types, each a module and a name in it."""
    types = (getattr(sys.modules.get(module), name, ()) for module, name in kinds)
    return isinstance(value, tuple(types))


def _valid(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _Refused("is text that is not valid Unicode") from None
    return text


def _writable(number: int) -> int:
    """Raises ValueError for a number of more digits than Python writes."""
    int.__repr__(number)
    return number


def _finite(number: float) -> float:
    if number - number != 0:
        raise _Refused(f"is {number}, which JSON does not have: use None or a text instead")
    return number


def _no_nat(value: Any) -> Any:
    if value != value:
        raise _Refused("is not a time (NaT): use None instead")
    return value


def _why_not(value: object) -> str:
    kind = type(value).__name__
    if isinstance(value, bytes | bytearray | memoryview):
        return f"is {kind}, which JSON does not have: use a text, or {KEEP_ELSEWHERE}"
    return f"is of type {kind}, which has no JSON form: convert it first"


def _sorted(values: list[Any]) -> list[Any]:
    """The order of a set is another one in each process: the stored text has to be the same."""
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=jsontext.dumps)


def _line(error: Exception) -> str:
    """The error in one line, even if its own `__str__` fails."""
    try:
        text = str(error).partition("\n")[0]
    except Exception:  # noqa: BLE001  (the value's own code raised it)
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
