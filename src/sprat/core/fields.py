"""The fields of settings and options: what each may be, and the sentence when it is not.

A settings module has a table FIELDS from name to field, beside a record with the defaults:

    FIELDS = {"max_workers": whole(0, 100_000).means("never more workers than this")}

Calling a field checks a value. The same declaration gives the tables of docs/reference/settings.md
and the JSON schema of sprat.yml (tools/settings_reference.py).
"""

from __future__ import annotations

from sprat.core.errors import InvalidInput
from sprat.core.payload import MAX_DELAY_SECONDS
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, TypeGuard

    Rule = tuple[str, Callable[[Any], object]]  # what completes "NAME must be ...", and its test

ANY_TEXT = "a text"
MAX_WORKERS = 100_000
UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
TIME = {"type": "string", "pattern": r"^([0-9]+\.?[0-9]*|\.[0-9]+)(ms|s|m|h|d)$"}


class Field(Record):
    """One setting: `field(value, name)` returns the value, or raises InvalidInput."""

    rules: tuple[Rule, ...]  # in this order: the first that is broken is reported
    schema: Mapping[str, Any]  # JSON schema of the value as it stands in a YAML file
    checks: tuple[Callable[[Any, str], object], ...] = ()  # after the rules: `check(value, name)`
    is_optional: bool = False  # None is allowed too
    is_time: bool = False  # seconds, which may have a unit in a YAML file
    meaning: str = ""

    def __call__(self, value: Any, name: str) -> Any:
        if value is None and self.is_optional:
            return None
        for allowed, accepts in self.rules:
            if not accepts(value):
                raise InvalidInput(f"{name} must be {allowed}, not {value!r}")
        for check in self.checks:
            check(value, name)
        return value

    def read(self, value: Any, name: str) -> Any:
        """The value of a YAML file, checked: `5m` is 300.0 seconds there."""
        if not self.is_time or not isinstance(value, str):
            return self(value, name)
        seconds = duration(value)
        if seconds is None:
            raise InvalidInput(
                f"{name} must be {self.rules[0][0]}, not {value!r}, "
                f"or a time such as 500ms, 90s, 5m, 2h or 1d"
            )
        return self(seconds, name)

    @property
    def allowed(self) -> str:
        """The values that it may have, in a few words."""
        words = [allowed for allowed, _ in self.rules]
        if len(words) > 1 and words[0] == ANY_TEXT:
            del words[0]  # the next rule says more
        return ", ".join([*words, "or null"] if self.is_optional else words)

    def means(self, meaning: str) -> Field:
        """The field with the line that the reference prints about it."""
        return self.replace(meaning=meaning)

    def also(self, allowed: str, accepts: Callable[[Any], object], **schema: Any) -> Field:
        """The field with one more rule."""
        rules = (*self.rules, (allowed, accepts))
        return self.replace(rules=rules, schema={**self.schema, **schema})

    def then(self, check: Callable[[Any, str], object]) -> Field:
        """The field with one more check, which raises InvalidInput with a sentence of its own."""
        return self.replace(checks=(*self.checks, check))


# -- kinds --------------------------------------------------------------------------------------


def kind(allowed: str, accepts: Callable[[Any], object], **schema: Any) -> Field:
    """A field with one rule: `allowed` completes "NAME must be ..."."""
    return Field(rules=((allowed, accepts),), schema=schema)


def custom(allowed: str, check: Callable[[Any, str], object], **schema: Any) -> Field:
    """A field whose check raises sentences of its own."""
    return kind(allowed, lambda _: True, **schema).then(check)


def optional(field: Field) -> Field:
    return field.replace(is_optional=True, schema={"anyOf": [field.schema, {"type": "null"}]})


def flag() -> Field:
    return kind("true or false", lambda value: isinstance(value, bool), type="boolean")


def choice(*words: str) -> Field:
    return kind(" or ".join(words), lambda value: value in words, enum=list(words))


def whole(low: int, high: int) -> Field:
    return kind(
        f"a whole number from {low} to {high}",
        lambda value: type(value) is int and low <= value <= high,
        type="integer",
        minimum=low,
        maximum=high,
    )


def workers() -> Field:
    return whole(0, MAX_WORKERS)


def number(low: float, high: float, allowed: str = "") -> Field:
    return kind(
        allowed or f"a number from {low:g} to {high:g}",
        lambda value: is_number(value) and low <= value <= high,
        type="number",
        minimum=low,
        maximum=high,
    )


def seconds(high: float = MAX_DELAY_SECONDS) -> Field:
    plain = number(0.0, high, f"seconds from 0 to {high:.0f}")
    return plain.replace(schema={"anyOf": [plain.schema, TIME]}, is_time=True)


def more_than_zero(field: Field) -> Field:
    return field.also("more than 0", lambda value: value > 0, exclusiveMinimum=0)


def at_least(low: float, field: Field) -> Field:
    return field.also(f"at least {low:g} seconds", lambda value: value >= low, minimum=low)


def text(accepts: Callable[[str], object] = lambda value: "\0" not in value) -> Field:
    """A text that is not empty. NUL is refused: neither stores nor programs take it."""
    return kind(
        ANY_TEXT,
        lambda value: isinstance(value, str) and value and accepts(value),
        type="string",
        minLength=1,
    )


def line() -> Field:
    """A text of printable characters."""
    return text(str.isprintable)


def matching(pattern: re.Pattern[str], allowed: str) -> Field:
    """A text that the whole pattern matches."""
    return kind(
        allowed,
        lambda value: isinstance(value, str) and pattern.fullmatch(value),
        type="string",
        pattern=f"^({pattern.pattern})$",
    )


def texts(each: Field, allowed: str = "a list of texts", *, empty: str = "") -> Field:
    """A list. `empty` is what a sentence says about one without elements, where that is refused."""

    def inside(values: Sequence[object], name: str) -> None:
        if empty and not values:
            raise InvalidInput(f"{name} {empty}")
        for value in values:
            each(value, name)

    return kind(
        allowed,
        lambda value: isinstance(value, list | tuple),
        **{"type": "array", "items": each.schema, **({"minItems": 1} if empty else {})},
    ).then(inside)


def mapping(
    what: str,
    entry: Callable[[str, Any, str], object] | None = None,
    *,
    values: Mapping[str, Any] | None = None,
) -> Field:
    """A mapping by texts: `entry(key, value, name)` checks each entry, `values` is the JSON schema
    of the values."""

    def inside(entries: Mapping[str, Any], name: str) -> None:
        for key, value in entries.items():
            if entry is not None:
                entry(key, value, name)

    return kind(
        f"a mapping {what}",
        lambda value: isinstance(value, dict) and all(isinstance(key, str) for key in value),
        type="object",
        additionalProperties=values or {},
    ).then(inside)


# -- values -------------------------------------------------------------------------------------


def is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def duration(text: str) -> float | None:
    """`5m` as 300.0 seconds; None for a text that is no time."""
    digits = text.rstrip("mshd")
    unit = UNITS.get(text[len(digits) :])
    if unit is None or not digits.replace(".", "", 1).isdecimal() or not digits.isascii():
        return None
    return float(digits) * unit


def find(table: Mapping[str, Field], name: str, has_no: str) -> Field:
    """The field of this name; `has_no` begins the sentence about a name that is not there."""
    if name not in table:
        from sprat.core.did_you_mean import did_you_mean  # here: most names are right

        near = did_you_mean(name, table) if table else ": it has none"
        raise InvalidInput(f"{has_no} {name!r}{near}")
    return table[name]


def option(
    owner: str, table: Mapping[str, Field], name: str, value: object, *, in_file: bool
) -> Any:
    """The value of an option of a policy or launcher, checked: the owner begins each sentence."""
    try:
        field = find(table, name, "it has no option")
        return field.read(value, name) if in_file else field(value, name)
    except InvalidInput as error:
        raise InvalidInput(f"{owner}: {error}") from None
