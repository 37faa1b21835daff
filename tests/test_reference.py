"""The reference pages say what the code says: every command, option and setting, and no other."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

import pytest

from sprat.cli.arguments import CommandParser
from sprat.cli.completion import parser_of
from sprat.cli.main import COMMANDS
from sprat.config.project_file import TOP

REFERENCE = Path(__file__).parent.parent / "docs" / "reference"
CLI = (REFERENCE / "cli.md").read_text()
SETTINGS = (REFERENCE / "settings.md").read_text()

ROW = re.compile(r"^\| `([^`]+)` \| (.*) \|$", re.MULTILINE)
EVERYWHERE = ("--help", "--json", "--url")


def parsers() -> dict[str, CommandParser]:
    """Every command that takes options, by the name of its section."""
    found: dict[str, CommandParser] = {}
    for command in COMMANDS:
        parser = parser_of(command)
        if parser is not None:
            inner = {f"{command} {action}": p for action, p in parser.inner().items()}
            found |= inner or {command: parser}
    return found


def section(page: str, title: str) -> str:
    found = re.search(rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found, f"no section {title!r}"
    return found[1].replace("\\|", "|")


def rows_of(parser: CommandParser) -> dict[str, str]:
    """The rows that a command's table must have: each option as it is typed, and its help."""
    rows = {}
    for action in parser._actions:
        names = [name for name in action.option_strings if name.startswith("--")]
        name = names[0] if names else "".join(action.option_strings)
        if name and name not in EVERYWHERE and action.help != argparse.SUPPRESS:
            rows[typed(name, action)] = action.help or ""
    return rows


def typed(name: str, action: argparse.Action) -> str:
    if action.nargs == 0:
        return name
    if action.choices:
        return f"{name} {'|'.join(action.choices)}"
    return f"{name} {action.metavar or action.dest.upper()}"


def test_every_command_has_its_section_and_no_other() -> None:
    sections = re.findall(r"^## sprat (?!\.yml)(.+)$", CLI, re.MULTILINE)
    assert sorted(sections) == sorted({*COMMANDS, *parsers()})


@pytest.mark.parametrize("command", list(parsers()))
def test_options_are_documented_as_they_are(command: str) -> None:
    documented = dict(ROW.findall(section(CLI, f"sprat {command}")))
    assert documented == rows_of(parsers()[command])


@pytest.mark.parametrize("command", list(parsers()))
def test_usage_names_every_argument(command: str) -> None:
    text = section(CLI, f"sprat {command}")
    for action in parsers()[command]._actions:
        if not action.option_strings:
            name = "|".join(action.choices) if action.choices else str(action.metavar)
            assert name in text.split("```")[1]


def test_every_key_of_the_file_is_documented() -> None:
    rows = [name for name, _ in ROW.findall(section(SETTINGS, "sprat.yml"))]
    assert rows == list(TOP)


def test_every_variable_is_documented() -> None:
    source = Path(__file__).parent.parent / "src" / "sprat"
    read = set()
    for path in source.rglob("*.py"):
        read |= set(re.findall(r'environ(?:ment)?(?:\.get)?[\[(]"(SPRAT_\w+)"', path.read_text()))
    read |= {"SPRAT_MAX_WORKERS", "SPRAT_MIN_WORKERS"}
    assert {name for name, _ in ROW.findall(section(SETTINGS, "Environment"))} >= read
