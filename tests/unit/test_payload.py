"""Checks on input: what is taken comes back as JSON, what is refused is refused in one sentence."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sprat.core import model, payload
from sprat.core.errors import InvalidInput

texts = st.text(st.characters(exclude_categories=["Cs"]))
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
)
json_values = st.recursive(
    scalars | texts,
    lambda inner: st.lists(inner) | st.dictionaries(texts, inner),
    max_leaves=20,
)
keys = (
    st.text()
    | scalars
    | st.dates()
    | st.uuids()
    | st.floats()
    | st.binary()
    | st.tuples(st.integers() | st.binary())
)
hashable = keys | st.datetimes(timezones=st.timezones()) | st.times() | st.timedeltas()
anything = st.recursive(
    hashable | st.decimals() | st.complex_numbers() | st.frozensets(hashable),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(keys, inner),
    max_leaves=20,
)


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all the way down: True is not 1, nor 1.0."""
    if type(one) is not type(other) or one != other:
        return False
    if isinstance(one, dict):
        return all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return all(same(a, b) for a, b in zip(one, other, strict=True))
    return True


@given(json_values)
def test_json_value_comes_back_equal(value: Any) -> None:
    assert same(json.loads(payload.encode(value, "payload")), value)


@given(anything)
def test_value_is_stored_as_json_or_refused_in_one_sentence(value: Any) -> None:
    refusal = text = ""
    try:
        text = payload.encode(value, "payload")
    except InvalidInput as refused:
        refusal = str(refused)
    if refusal:
        assert refusal.startswith("the payload")
        assert "\n" not in refusal
        refusal.encode()
    else:
        assert payload.encode(json.loads(text), "payload") == text


def test_tuple_is_taken_as_a_list() -> None:
    assert json.loads(payload.encode((1, (2, 3)), "payload")) == [1, [2, 3]]


def test_text_is_compact_and_readable() -> None:
    assert payload.encode({"ä": [1, 2]}, "payload") == '{"ä":[1,2]}'


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("\ud800", "not valid Unicode"),
        ("x" * payload.MAX_BYTES, "1,048,578 bytes of JSON"),
    ],
)
def test_refusal_says_what_is_wrong(value: Any, words: str) -> None:
    with pytest.raises(InvalidInput, match=words):
        payload.encode(value, "payload")


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * payload.MAX_NAME_CHARS, "0"])
def test_pool_name_is_taken(name: str) -> None:
    assert payload.pool_name(name) == name


@given(texts)
def test_pool_name_is_safe_everywhere_or_refused(name: str) -> None:
    try:
        taken = payload.pool_name(name)
    except InvalidInput:
        return
    assert taken == name
    assert name
    assert name.isascii()
    assert not set(name) & set("/\\ :*?\"'<>|\0\n")


@given(st.text(min_size=1, max_size=payload.MAX_NAME_CHARS))
def test_label_is_printable_or_refused(text: str) -> None:
    try:
        assert payload.label(text, "tenant") == text
    except InvalidInput:
        assert not text.isprintable()
    else:
        text.encode()  # any store can hold it


def test_no_label_is_none() -> None:
    assert payload.label(None, "tenant") is None


@pytest.mark.parametrize("value", [0, 1, 1.5, payload.MAX_DELAY_SECONDS])
def test_seconds_are_taken_as_a_float(value: float) -> None:
    taken = payload.seconds(value, "delay")
    assert taken == value
    assert type(taken) is float


@pytest.mark.parametrize("value", [-0.001, float("nan"), float("inf"), "1", None, True, 1j])
def test_seconds_that_are_none_are_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="delay must be seconds from 0 to"):
        payload.seconds(value, "delay")


@pytest.mark.parametrize("value", [0, 4, True, 2.0, "2", None])
def test_whole_number_out_of_range_is_refused(value: Any) -> None:
    with pytest.raises(InvalidInput, match="n must be a whole number from 1 to 3"):
        payload.whole(value, "n", 1, 3)


def test_ids_are_unique_and_neighbours_in_time() -> None:
    ids = [payload.new_id() for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert ids[0][:6] == ids[-1][:6]
    assert len(set(payload.new_ids(1000))) == 1000


def test_new_item_has_what_was_said() -> None:
    item = payload.new_item({"a": 1}, max_retries=2, priority=3, delay=4, tenant="t", key="k")
    assert item == model.NewItem(
        id=item.id, data='{"a":1}', max_retries=2, priority=3, delay=4.0, tenant="t", key="k"
    )


def test_items_like_one_share_its_options_but_not_its_id() -> None:
    first = payload.new_item(None, priority=3, group="g", backlog=True)
    items = payload.many_like(first, ["a", "b"])
    assert [item.data for item in items] == ['"a"', '"b"']
    assert {(item.priority, item.group, item.backlog) for item in items} == {(3, "g", True)}
    assert len({first.id, *(item.id for item in items)}) == 3


@given(st.text() | st.integers() | st.binary())
def test_error_text_can_be_stored_anywhere(error: object) -> None:
    text = payload.error_text(error)
    assert text is not None
    text.encode()
    assert "\0" not in text


def test_error_text_is_cut() -> None:
    text = payload.error_text("x" * 100_000)
    assert text is not None
    assert len(text) < payload.MAX_ERROR_CHARS + 100
    assert text.endswith("... (cut, 100,000 characters)")
    assert payload.error_text(None) is None
