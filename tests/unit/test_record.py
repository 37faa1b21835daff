"""Records: values that compare by their fields and never change."""

from __future__ import annotations

import copy
import pickle

import pytest

from sprat.core import model
from sprat.core.record import Record
from sprat.store.backend import ClaimRef, WorkerRef


class Point(Record):
    x: int
    y: int = 0
    name: str | None = None

    @property
    def total(self) -> int:
        return self.x + self.y


class Size(Record):
    x: int
    y: int = 0
    name: str | None = None


def test_fields_are_given_by_name_and_have_defaults() -> None:
    point = Point(x=1)
    assert (point.x, point.y, point.name, point.total) == (1, 0, None, 1)
    assert Point(x=1, y=2, name="p").as_dict() == {"x": 1, "y": 2, "name": "p"}


def test_record_from_all_its_values_in_order() -> None:
    assert Point.of((1, 2, "p")) == Point(x=1, y=2, name="p")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "Point needs x"),
        ({"y": 1}, "Point needs x"),
        ({"x": 1, "z": 2}, "Point has no z"),
        ({"x": 1, "y": 2, "name": "p", "z": 2}, "Point has no z"),
    ],
)
def test_wrong_fields_are_refused(values: dict[str, int], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        Point(**values)


def test_misspelt_field_is_refused_even_if_the_number_of_fields_is_right() -> None:
    with pytest.raises(TypeError, match="Point"):
        Point(x=1, y=2, nam="p")  # type: ignore[call-arg]


def test_fields_cannot_be_given_by_place() -> None:
    with pytest.raises(TypeError):
        Point(1)  # type: ignore[misc]


def test_record_is_frozen() -> None:
    point = Point(x=1)
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(AttributeError):
        point.z = 2  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        del point.x
    assert point == Point(x=1)


def test_replace_makes_another_record() -> None:
    point = Point(x=1, name="p")
    assert point.replace(y=5) == Point(x=1, y=5, name="p")
    assert point == Point(x=1, name="p")
    with pytest.raises(TypeError):
        point.replace(z=1)


def test_records_are_equal_by_kind_and_fields() -> None:
    assert Point(x=1) == Point(x=1, y=0)
    assert Point(x=1) != Point(x=2)
    assert Point(x=1) != Size(x=1)
    assert Point(x=1) != (1, 0, None)
    assert not Point(x=1) == (1, 0, None)  # noqa: SIM201 - both operators are ours
    assert len({Point(x=1), Point(x=1), Point(x=2)}) == 2


def test_repr_shows_what_is_set_but_never_a_token() -> None:
    assert repr(Point(x=1)) == "Point(x=1, y=0)"
    item = model.WorkItem(id="i", pool="p", data=None, token="secret")
    assert "secret" not in repr(item)
    assert "secret" not in repr(ClaimRef(item_id="i", token="secret"))
    assert "secret" not in repr(model.Exchange(items=(item,)))
    assert "secret" not in f"{item} {item!s}"


@pytest.mark.parametrize(
    "record",
    [
        Point(x=1, name="p"),
        WorkerRef(worker_id="w"),
        model.WorkItem(id="i", pool="p", data={"a": [1]}, token="t"),
        model.Exchange(items=(model.WorkItem(id="i", pool="p", data=None),)),
    ],
    ids=lambda record: type(record).__name__,
)
def test_records_travel_between_processes(record: Record) -> None:
    again = pickle.loads(pickle.dumps(record))
    assert again == record
    assert type(again) is type(record)
    assert copy.copy(record) == record
    assert copy.deepcopy(record) == record


def test_counts_add_up() -> None:
    counts = model.Counts(pending=5, delayed=2, backlog=1, claimed=3, done=4, poisoned=1)
    assert (counts.ready, counts.total) == (3, 14)


def test_rate_of_no_time_is_zero() -> None:
    assert model.Stats(seconds=0, arrivals=3).arrivals_per_second == 0
