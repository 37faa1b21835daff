"""The tables of settings and the JSON schema of sprat.yml are those that the declarations give."""

from __future__ import annotations

import copy
import json
import re
import runpy
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from ruamel.yaml import YAML

from sprat.config import project_file
from sprat.core.errors import InvalidInput

TOP = Path(__file__).parent.parent
TOOL = runpy.run_path(str(TOP / "tools" / "settings_reference.py"))
UPDATE = "run `make reference`"
SCHEMA = TOP / "docs" / "reference" / "sprat.schema.json"
VALIDATOR = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
YAML_BLOCK = re.compile(r"^```ya?ml\n(.*?)^```", re.MULTILINE | re.DOTALL)


def parsed(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def files() -> dict[str, str]:
    """Every sprat.yml of the examples, and every block of the pages that is one."""
    found = {str(p.relative_to(TOP)): p.read_text() for p in TOP.glob("examples/**/sprat.yml")}
    for page in sorted(
        [*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("examples/**/*.md")]
    ):
        for place, block in enumerate(YAML_BLOCK.findall(page.read_text())):
            tree = None if "\n---\n" in block else parsed(block)
            if isinstance(tree, dict) and tree and set(tree) <= set(project_file.TOP):
                found[f"{page.relative_to(TOP)}:{place}"] = block
    return found


FILES = files()
FULL = parsed("""
store: sqlite:///fleet.db
launcher: docker
pools:
  papers:
    handler: papers:analyze
    max_workers: 8
    timeout_seconds: 5m
    policy: step
    policy_options: {steps: {"0": 0, "1+": 3}, scale_down_delay_seconds: 1.5h}
    launcher_options: {image: papers, memory: 512m}
  pods:
    launcher: kubernetes
    launcher_options: {image: papers, cpu: 500m, template: pod.yml}
    policy_options: {wait_seconds: 10}
  nothing:
triggers:
  - {name: check, type: cron, schedule: "* * * * *", timeout_seconds: 90}
worker_lifecycle: {health_check_interval: 10s, probe_hosts: [10.0.0.0/8]}
""")


@pytest.mark.parametrize("name", TOOL["PAGES"])
def test_the_tables_are_current(name: str) -> None:
    page = (TOP / "docs" / name).read_text()
    assert page == TOOL["page"](page), UPDATE


def test_the_schema_is_current() -> None:
    assert SCHEMA.read_text() == TOOL["schema_text"](), UPDATE
    jsonschema.Draft7Validator.check_schema(TOOL["schema"]())


@pytest.mark.parametrize("name", TOOL["TABLES"])
def test_every_field_belongs_to_its_record_and_has_a_meaning(name: str) -> None:
    fields, record = TOOL["TABLES"][name]
    assert fields.keys() == set(record._names) - {"is_stated"}
    assert all(field.meaning for field in fields.values())


@pytest.mark.parametrize("name", FILES)
def test_the_schema_accepts_the_files_of_docs_and_examples(name: str) -> None:
    VALIDATOR.validate(parsed(FILES[name]))


def test_there_are_files_to_check() -> None:
    assert len(FILES) > 10


@pytest.mark.parametrize(
    ("place", "wrong"),
    [
        ((), {"pool": {}}),
        (("pools", "papers"), {"max_worker": 3}),
        (("pools", "papers"), {"max_workers": "ten"}),
        (("pools", "papers"), {"max_workers": 100_001}),
        (("pools", "papers"), {"timeout_seconds": "soon"}),
        (("pools", "papers"), {"timeout_seconds": 0}),
        (("pools", "papers"), {"handler": "papers"}),
        (("pools", "papers"), {"isolation": "thread"}),
        (("pools", "papers"), {"events": {}}),
        (("pools", "papers"), {"policy": "slow"}),
        (("pools", "papers"), {"policy": "headroom"}),  # its options are those of step
        (("pools", "papers", "policy_options"), {"step": {}}),
        (("pools", "papers", "launcher_options"), {"imagine": "x"}),
        (("pools", "pods", "launcher_options"), {"volumes": ["a:/b"]}),
        (("pools", "pods", "policy_options"), {"wait_secons": 3}),
        (("triggers", 0), {"shedule": "* * * * *"}),
        (("triggers", 0), {"timeout_seconds": 100_000}),
        (("worker_lifecycle",), {"removal_treshold": 3}),
    ],
    ids=str,
)
def test_what_is_misspelt_is_refused_by_schema_and_by_sprat(
    place: tuple[Any, ...], wrong: dict[str, Any], tmp_path: Path
) -> None:
    tree = copy.deepcopy(FULL)
    VALIDATOR.validate(tree)
    inner = tree
    for key in place:
        inner = inner[key]
    inner.update(wrong)
    assert not VALIDATOR.is_valid(tree)
    path = tmp_path / "sprat.yml"
    path.write_text(json.dumps(tree))  # JSON is YAML
    with pytest.raises(InvalidInput):
        project_file.load(str(path))
