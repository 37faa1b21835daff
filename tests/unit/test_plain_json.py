"""Which JSON is stored for a Python value, and how a value without a JSON form is refused."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import pathlib
import subprocess
import sys
import uuid
from collections import Counter, OrderedDict, namedtuple
from typing import Any, ClassVar

import numpy as np
import pydantic
import pytest

from sprat.core import payload
from sprat.core.errors import InvalidInput

ID = uuid.UUID(int=7)
UTC = datetime.UTC
DAY = datetime.date(2026, 7, 1)
NOON = datetime.datetime(2026, 7, 1, 12, 30, tzinfo=UTC)
Point = namedtuple("Point", "x y")


class Colour(enum.Enum):
    RED = "red"
    DATED = DAY


class Word(str, enum.Enum):  # noqa: UP042  (older code has such classes)
    YES = "yes"


class Level(enum.IntEnum):
    HIGH = 3


class Ratio(float):
    def __repr__(self) -> str:
        return "a ratio"


@dataclasses.dataclass
class Leg:
    symbol: str
    weight: Any


@dataclasses.dataclass(frozen=True, slots=True)
class Trade:
    legs: tuple[Leg, ...]
    at: datetime.datetime = NOON
    known: ClassVar[int] = 1


class Report(pydantic.BaseModel):
    day: datetime.date
    price: decimal.Decimal
    path: pathlib.Path
    tags: set[str]


def stored(value: object) -> Any:
    return json.loads(payload.encode(value, "result"))


def same(one: Any, other: Any) -> bool:
    return json.dumps(one) == json.dumps(other)  # True is not 1, nor 1.0


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.float64(1.25), 1.25),
        (np.float32(0.5), 0.5),
        (np.longdouble(0.5), 0.5),
        (np.int64(-7), -7),
        (np.uint8(255), 255),
        (np.bool_(True), True),
        (np.str_("a"), "a"),
        (np.datetime64("2026-07-01T12:30:00.000000001"), "2026-07-01T12:30:00.000000001"),
        (np.datetime64("2026-07-01"), "2026-07-01"),
        (np.timedelta64(1500, "ms"), 1.5),
        (np.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]]),
        (np.array(2.5), 2.5),
        (np.array([0.5], dtype=np.longdouble), [0.5]),
        (np.array(["2026-07-01"], dtype="M8[ns]"), ["2026-07-01T00:00:00.000000000"]),
        (np.array([1500], dtype="m8[ms]"), [1.5]),
        (np.array([Leg("A", None)], dtype=object), [{"symbol": "A", "weight": None}]),
        (np.ma.array([1, 2], mask=[False, True]), [1, None]),
    ],
)
def test_numpy_value_is_stored_as_numbers_and_lists(value: object, expected: Any) -> None:
    assert same(stored(value), expected)
    assert same(stored({"a": [value]}), {"a": [expected]})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (NOON, "2026-07-01T12:30:00+00:00"),
        (DAY, "2026-07-01"),
        (NOON.time(), "12:30:00"),
        (datetime.timedelta(minutes=1, milliseconds=500), 60.5),
        (decimal.Decimal("1.10"), "1.10"),
        (ID, "00000000-0000-0000-0000-000000000007"),
        (pathlib.PurePosixPath("/a/b"), "/a/b"),
        (pathlib.Path("a"), "a"),
        (Colour.RED, "red"),
        (Colour.DATED, "2026-07-01"),
        (Word.YES, "yes"),
        (Level.HIGH, 3),
        (Ratio(0.5), 0.5),
        ({3, 1, 2}, [1, 2, 3]),
        (frozenset({"b", "a"}), ["a", "b"]),
        ({None, "b", 1}, ["b", 1, None]),
        ((1, (2,)), [1, [2]]),
        (Point(1, DAY), [1, "2026-07-01"]),
        (OrderedDict(a=1), {"a": 1}),
        (Counter("aab"), {"a": 2, "b": 1}),
        (
            Trade((Leg("A", np.float64(0.5)),)),
            {"legs": [{"symbol": "A", "weight": 0.5}], "at": "2026-07-01T12:30:00+00:00"},
        ),
        (
            Report(day=DAY, price="1.10", path="a", tags={"x"}),
            {"day": "2026-07-01", "price": "1.10", "path": "a", "tags": ["x"]},
        ),
    ],
)
def test_python_value_is_stored_as_plain_json(value: object, expected: Any) -> None:
    assert same(stored(value), expected)
    assert same(stored({"a": [value]}), {"a": [expected]})


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (1, "1"),
        (0.95, "0.95"),
        (True, "true"),
        (None, "null"),
        (np.int64(2024), "2024"),
        (np.str_("a"), "a"),
        (Word.YES, "yes"),
        (Level.HIGH, "3"),
        (DAY, "2026-07-01"),
        (ID, str(ID)),
        (pathlib.PurePosixPath("/a"), "/a"),
    ],
)
def test_key_of_a_dict_is_stored_as_text(key: object, expected: str) -> None:
    assert stored({key: 1}) == {expected: 1}


class Loop:
    def model_dump(self, mode: str) -> object:
        return self


class Broken(Exception):
    def __str__(self) -> str:
        raise ValueError("no text")


class Fails:
    def __init__(self, error: Exception) -> None:
        self._error = error

    def model_dump(self, mode: str) -> object:
        raise self._error


def itself() -> object:
    value: dict[str, object] = {}
    value["a"] = value
    return value


ADDRESS = "keep it elsewhere and send its address"


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ({"sharpe": float("nan")}, 'result["sharpe"] is nan, which JSON does not have: use None'),
        ([1, [np.float64("-inf")]], "result[1][0] is -inf, which JSON does not have"),
        (np.array([1.0, np.nan]), "result[1] is nan"),
        ({"a": b"x"}, f'result["a"] is bytes, which JSON does not have: use a text, or {ADDRESS}'),
        ([bytearray()], "result[0] is bytearray, which"),
        (np.bytes_(b"x"), "result is bytes, which"),
        ({"a": {"b": object()}}, 'result["a"]["b"] is of type object, which has no JSON form'),
        (Leg("A", 1j), 'result["weight"] is of type complex, which has no JSON form'),
        (np.complex128(1j), "result is of type complex, which has no JSON form"),
        (Leg, "result is of type type, which has no JSON form"),
        ({"a": "\ud800"}, 'result["a"] is text that is not valid Unicode'),
        ({"\ud800": 1}, "result has a key that is text that is not valid Unicode"),
        ({"\n": {1: 0, "1": 0}}, 'result["\\n"] has two keys that are stored as "1"'),
        ({"a": {(1, 2): 0}}, 'result["a"] has a tuple as a key: use a text instead'),
        ({(1, b""): 0}, "result has a key that is bytes"),
        ({"a": np.datetime64("NaT")}, 'result["a"] is not a time (NaT): use None instead'),
        (np.zeros(1 << 20), "result has 1,048,576 elements, too many to be stored: keep"),
        ([10**5000], "result[0] cannot be converted: ValueError: Exceeds the limit"),
        ([Fails(KeyError("k\nl"))], "result[0] cannot be converted: KeyError: "),
        ([Fails(Broken())], "result[0] cannot be converted: Broken"),
    ],
)
def test_refusal_names_the_place_and_what_to_do(value: object, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        payload.encode(value, "result")
    assert str(refused.value).startswith(f"the result is not JSON: {sentence}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [itself(), Loop(), {"a": Loop()}])
def test_value_that_contains_itself_is_refused_in_one_short_sentence(value: object) -> None:
    with pytest.raises(InvalidInput) as refused:
        payload.encode(value, "call of add")
    sentence = "the call of add is nested more than 64 levels, or contains itself: call"
    assert str(refused.value).startswith(sentence)
    assert len(str(refused.value)) < 300


def test_array_that_fits_is_stored_and_counts_as_its_text() -> None:
    assert len(stored(np.zeros(100_000, dtype=int))) == 100_000
    with pytest.raises(InvalidInput, match="the result is 1,200,001 bytes of JSON"):
        payload.encode(np.zeros(300_000), "result")


def test_set_is_stored_as_the_same_text_in_each_process() -> None:
    code = (
        "from sprat.core import payload; print(payload.encode({'a', 'b', 'c', None, 1}, 'result'))"
    )
    texts = {
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            env={"PYTHONPATH": ":".join(sys.path), "PYTHONHASHSEED": str(seed)},
            check=True,
        ).stdout
        for seed in range(3)
    }
    assert len(texts) == 1


def test_plain_value_is_stored_without_the_converter() -> None:
    code = (
        "import sys; from sprat.core import payload;"
        "payload.encode({'a': [1, 2.5, (None, 'x')]}, 'result');"
        "print('sprat.core.plain_json' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    assert ran.stdout.split() == ["False"]


def test_conversion_works_without_the_c_half_of_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sprat.core.jsontext._encode", None)
    assert stored({1: DAY}) == {"1": "2026-07-01"}
    with pytest.raises(InvalidInput, match="contains itself"):
        stored(itself())
