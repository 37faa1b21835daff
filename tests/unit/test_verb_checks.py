"""The payloads of verbs are passed on as they came, or refused."""

from __future__ import annotations

import pytest

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.server.verb_checks import json_text

DEEP = payload.MAX_DEPTH


@pytest.mark.parametrize(
    "text",
    [
        *("1", ' {"a" : [1, 2.5]}\n', '"\\u00e9"', "123456789012345678901234567890"),
        *("[" * DEEP + "]" * DEEP, "[" + "{}," * 100 + "{}]", '["' + "[" * 100 + '"]'),
        " " * payload.MAX_BYTES + "1",
    ],
)
def test_json_text_is_passed_on_as_it_came(text: str) -> None:
    assert json_text(text, "payload") is text


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "01", "1 2", "NaN", "1e999", '"\\ud800"', '"\ud800"', '"\t"', "{'a': 1}"),
        *("[" * (DEEP + 1) + "]" * (DEEP + 1), "[" * 100_000, '"' + "x" * payload.MAX_BYTES + '"'),
    ],
)
def test_text_that_no_store_may_get_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        json_text(text, "payload")
