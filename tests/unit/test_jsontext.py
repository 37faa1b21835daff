"""JSON through the C half alone is JSON all the same."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from sprat.core import jsontext

VALUES = some.recursive(
    some.none()
    | some.booleans()
    | some.integers()
    | some.floats(allow_nan=False, allow_infinity=False)
    | some.text(),
    lambda inner: some.lists(inner) | some.dictionaries(some.text(), inner),
    max_leaves=20,
)


def as_json(value: object) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False, separators=(",", ":"))


@given(VALUES)
def test_text_is_what_json_makes_and_reads(value: Any) -> None:
    text = jsontext.dumps(value)
    assert text == as_json(value)
    assert jsontext.loads(text) == json.loads(text) == value
    assert jsontext.loads(f" \n{text}\t") == value


@pytest.mark.parametrize("text", ["", "{", "[1,]", '{"a" 1}', "nul", '"\n"', "1 2", "{'a': 1}"])
def test_text_that_is_not_json_is_refused_in_the_words_of_json(text: str) -> None:
    with pytest.raises(json.JSONDecodeError) as ours:
        jsontext.loads(text)
    with pytest.raises(json.JSONDecodeError) as theirs:
        json.loads(text)
    assert str(ours.value) == str(theirs.value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), {1, 2}, b"", object()])
def test_value_without_a_json_form_is_refused(value: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        jsontext.dumps(value)


def test_value_that_contains_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises((ValueError, RecursionError)):
        jsontext.dumps(value)


def test_without_the_c_half_json_itself_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jsontext, "_scan", None)
    monkeypatch.setattr(jsontext, "_encode", None)
    assert jsontext.loads(jsontext.dumps({"a": [1, "é"]})) == {"a": [1, "é"]}


def test_json_and_re_are_not_imported() -> None:
    code = (
        "import sys; from sprat.core import jsontext; jsontext.loads(jsontext.dumps([1]));"
        "print('re' in sys.modules, 'json' in sys.modules)"
    )
    told = subprocess.run(
        [sys.executable, "-S", "-c", code],
        capture_output=True,
        text=True,
        env={"PYTHONPATH": ":".join(sys.path)},
        check=True,
    )
    assert told.stdout.split() == ["False", "False"]


def test_wrong_text_is_a_value_error_before_json_is_imported() -> None:
    code = (
        "import sys\nfrom sprat.core import jsontext\nassert 'json' not in sys.modules\n"
        "try:\n    jsontext.loads('\"\\t\"')\nexcept ValueError as error:\n    print(error)"
    )
    command = [sys.executable, "-I", "-c", code]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "Invalid control character" in ended.stdout, ended.stderr
