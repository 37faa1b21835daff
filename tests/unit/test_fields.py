"""The kinds of fields: what each accepts, and the sentence for what it does not."""

from __future__ import annotations

import re
from typing import Any

import jsonschema
import pytest

from sprat.config import probe_settings, settings, trigger
from sprat.controller import limits
from sprat.core import fields
from sprat.core.errors import InvalidInput
from sprat.core.fields import Field
from sprat.launchers.docker import options as docker
from sprat.launchers.kubernetes import options as kubernetes
from sprat.scaling import policies

SENTENCES = [
    (fields.flag(), 1, "x must be true or false, not 1"),
    (fields.choice("a", "b"), "c", "x must be a or b, not 'c'"),
    (fields.whole(1, 9), 10, "x must be a whole number from 1 to 9, not 10"),
    (fields.whole(0, 9), True, "x must be a whole number from 0 to 9, not True"),
    (fields.number(0, 0.5), 1, "x must be a number from 0 to 0.5, not 1"),
    (fields.number(0, 1), float("nan"), "x must be a number from 0 to 1, not nan"),
    (fields.seconds(60), -1, "x must be seconds from 0 to 60, not -1"),
    (fields.more_than_zero(fields.seconds(60)), 0, "x must be more than 0, not 0"),
    (fields.at_least(2, fields.seconds(60)), 1, "x must be at least 2 seconds, not 1"),
    (fields.text(), "", "x must be a text, not ''"),
    (fields.text(), "a\0", "x must be a text, not 'a\\x00'"),
    (fields.line(), "a\nb", "x must be a text, not 'a\\nb'"),
    (fields.matching(re.compile("a+"), "many a"), "b", "x must be many a, not 'b'"),
    (fields.texts(fields.text()), "a", "x must be a list of texts, not 'a'"),
    (fields.texts(fields.text()), ["a", 1], "x must be a text, not 1"),
    (fields.texts(fields.text(), empty="is empty"), [], "x is empty"),
    (fields.mapping("from a to b"), [1], "x must be a mapping from a to b, not [1]"),
    (fields.mapping("from a to b"), {1: 1}, "x must be a mapping from a to b, not {1: 1}"),
]
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 51, -1, 0.5, 1e8, 1e13, "", "a", "a b", "a:b", "5m", "5w", "512m"),
    *("1.5g", "@daily", "UTC", "NAME", "10.0.0.0/8", "tcp://a:1", "/a:/b", "work_added", "cron"),
    *([], ["a"], ["NAME=1"], ["/a:/b"], ["work_added"], [1], {}, {"a": "b"}, {"a": 1}, {"0+": 1}),
    *({"a": {"handler": "a:b"}}, {"spec": {}}, {"work_added": ["a"]}, {"SPRAT_X": "b"}),
]


def tables() -> dict[str, Field]:
    named = {
        "pools": settings.FIELDS,
        "triggers": trigger.FIELDS,
        "worker_lifecycle": probe_settings.FIELDS,
        "overrides": limits.FIELDS,
        "docker": docker.FIELDS,
        "kubernetes": kubernetes.FIELDS,
        **{name: policies.find(name).FIELDS for name in policies.NAMES},
    }
    return {
        f"{table}.{name}": field
        for table, entries in named.items()
        for name, field in entries.items()
    }


@pytest.mark.parametrize(("field", "value", "sentence"), SENTENCES, ids=lambda part: str(part)[:40])
def test_what_is_not_allowed_is_one_sentence(field: Field, value: object, sentence: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        field(value, "x")
    assert str(refused.value) == sentence
    assert fields.optional(field)(None, "x") is None


def test_a_time_of_a_file_may_have_a_unit() -> None:
    assert fields.seconds().read("5m", "x") == 300.0
    assert fields.seconds().read(5, "x") == 5
    with pytest.raises(InvalidInput, match="x must be seconds from 0 to 60, not 300"):
        fields.seconds(60).read("5m", "x")
    with pytest.raises(InvalidInput, match="not 'soon', or a time such as 500ms"):
        fields.seconds().read("soon", "x")
    with pytest.raises(InvalidInput, match=r"not '5m'$"):
        fields.seconds()("5m", "x")


def test_allowed_values_are_described_in_a_few_words() -> None:
    assert fields.optional(fields.whole(0, 3)).allowed == "a whole number from 0 to 3, or null"
    assert settings.FIELDS["handler"].allowed == "module:function, or null"


@pytest.mark.parametrize("name", tables())
def test_the_schema_accepts_what_the_field_accepts(name: str) -> None:
    field = tables()[name]
    validator = jsonschema.Draft7Validator(field.schema)
    accepted = 0
    for value in (*VALUES, *field.schema.get("enum", ())):
        try:
            field.read(value, name)
        except InvalidInput:
            continue
        accepted += 1
        assert validator.is_valid(value), value
    assert accepted
