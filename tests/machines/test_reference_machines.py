"""The reference page of machines names every key, action, hook, filter and test, and no other."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from sprat.machines import schema
from sprat.machines.definition import MachineSettings
from sprat.machines.filters import FILTERS, METHODS
from sprat.machines.library import parse
from sprat.machines.runtime.actions import ACTIONS
from sprat.machines.scope import BUDGET, MAX_TEXT
from sprat.machines.value_tests import TESTS

DOCS = Path(__file__).parent.parent.parent / "docs"
PAGE = (DOCS / "reference" / "machines.md").read_text()
LEARN = (DOCS / "learn" / "machines.md").read_text()


def section(title: str) -> str:
    return re.split(r"^## ", PAGE.split(f"\n## {title}\n")[1], flags=re.MULTILINE)[0]


@pytest.mark.parametrize(
    ("title", "names"),
    [
        ("File", schema.TOP),
        ("data", schema.DATA),
        ("settings", MachineSettings._names),
        ("States", schema.STATE),
        ("Actions", ACTIONS),
        ("Hooks", schema.EVENTS),
    ],
)
def test_every_name_has_its_row_and_no_other(title: str, names: Iterable[str]) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", section(title), re.MULTILINE)
    assert sorted(rows) == sorted(names)


def test_an_action_is_described_by_its_own_words() -> None:
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*) \|$", section("Actions"), re.MULTILINE))
    assert rows == {name: " ".join(str(a.__doc__).split()) for name, a in ACTIONS.items()}


def test_filters_tests_methods_and_limits_are_named() -> None:
    text = section("Expressions")
    for word, table in (("Filters: ", FILTERS), ("Tests (`is`): ", TESTS)):
        names = re.findall(r"`(\w+)`", text.split(word)[1].split("\n\n")[0])
        assert names == list(table)
    for table in METHODS.values():
        assert " ".join(sorted(table)) in text
    assert f"{BUDGET:,} steps" in text
    assert f"{MAX_TEXT:,} characters" in text


def test_the_defaults_are_those_of_the_code() -> None:
    said = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", section("settings"), re.MULTILINE))
    assert said.pop("backends") == "none"
    assert said == {
        name: str(value or "none")
        for name, value in MachineSettings._defaults.items()
        if name in said
    }


def test_the_example_is_a_machine_and_says_what_the_page_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from sprat.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SPRAT_URL", raising=False)
    example = re.findall(r"```yaml\n(.*?)```", LEARN, re.DOTALL)[0]
    assert parse(example).name == "greet"
    (tmp_path / "greet.yml").write_text(example)
    assert main.main(["run", "greet.yml", "--input", '{"who": "sprat"}']) == 0
    assert capsys.readouterr().out.strip() in LEARN
