"""The YAML that we write is read the same by everybody, old readers and new."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from manifests_made import ENTRIES, EVERY_PART, PLAN
from ruamel.yaml import YAML

from sprat.manifests import parts, yaml_text

TEXTS = (
    st.text()
    | st.sampled_from(
        [
            "yes",
            "No",
            "on",
            "1e3",
            "0x1",
            "012",
            "1:30",
            "~",
            "-",
            "- a",
            "a: b",
            "a:",
            "#",
            " a",
            "a ",
        ]
    )
    | st.text("ay:-#'\" \n@=/.0", max_size=8)
)
LEAVES = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=12,
)


@settings(deadline=None)  # the machine may be busy
@given(st.dictionaries(TEXTS, TREES, min_size=1, max_size=4))
def test_readers_of_both_versions_read_what_was_written(value: dict[str, Any]) -> None:
    text = yaml_text.document(value)
    assert yaml.safe_load(text) == value  # YAML 1.1, as in most tools
    assert YAML(typ="safe", pure=True).load(text) == value  # YAML 1.2


@pytest.mark.parametrize("name", EVERY_PART)
def test_what_is_printed_is_what_was_meant(name: str) -> None:
    made = parts.build(PLAN, [name], ENTRIES)
    assert list(yaml.safe_load_all(parts.stream(PLAN, made))) == parts.listed(PLAN, made)["items"]
    [written] = [text for file, text in parts.files(PLAN, made).items() if file == f"{name}.yaml"]
    assert list(yaml.safe_load_all(written)) == made[name]


def test_it_looks_as_people_write_it() -> None:
    value = {
        "name": "a",
        "image": "registry.example/app:1",
        "port": 8000,
        "command": ["sprat", "--host", "0.0.0.0"],
        "volumes": [{"name": "tmp", "emptyDir": {}}],
        "data": {"file": "a: 1\n\nb: 2\n"},
        "flag": "true",
        "cpu": "100m",
    }
    assert (
        yaml_text.document(value)
        == """\
name: a
image: registry.example/app:1
port: 8000
command:
- sprat
- --host
- "0.0.0.0"
volumes:
- name: tmp
  emptyDir: {}
data:
  file: |
    a: 1

    b: 2
flag: "true"
cpu: 100m
"""
    )
