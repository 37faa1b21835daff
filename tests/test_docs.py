"""The documentation is checked against the code: links, commands, methods and examples."""

from __future__ import annotations

import inspect
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sprat.cli.completion import parser_of
from sprat.cli.main import COMMANDS
from sprat.store.open_store import open_store
from sprat.store.pool import WorkPool
from sprat.store.store import Store
from sprat.store.workers import Workers
from sprat.tasks.task import Task
from sprat.worker.job import Job

TOP = Path(__file__).parent.parent
PAGES = sorted([*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("examples/**/*.md")])
DECISIONS = sorted(TOP.glob("docs/decisions/[0-9]*.md"))
RUNNABLE = [  # README.md and start.md: tests/test_docs_sessions.py
    TOP / "docs" / "learn" / f"{page}.md"
    for page in ("tasks", "scaling", "in-process", "simulation")
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCED = re.compile(r"^```.*?\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^(?:\$ )?sprat ([a-z][a-z-]*)", re.MULTILINE)
TYPED = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S* )*sprat (.+)$", re.MULTILINE)
SPAN = re.compile(r"`sprat ([a-z][a-z-]*)[^`]*`")
SHELL = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
PYTHON = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


VARIABLES = {
    name
    for where in ("src/**/*.py", "bench/**/*.py", "tests/servers/*.py", "Makefile")
    for source in TOP.glob(where)
    for name in re.findall(r"SPRAT_[A-Z_]+", source.read_text())
}


def name_of(page: Path) -> str:
    return str(page.relative_to(TOP))


def anchors(page: Path) -> set[str]:
    """The anchors that a forge makes of a page's headings."""
    plain = [re.sub(r"[^\w\- ]", "", text).strip() for text in HEADING.findall(page.read_text())]
    return {text.lower().replace(" ", "-") for text in plain}


each_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


@each_page
def test_relative_links_lead_somewhere(page: Path) -> None:
    for link in LINK.findall(page.read_text()):
        if "://" in link or link.startswith("mailto:"):
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), f"{link} leads nowhere"
        if anchor:
            assert anchor in anchors(target), f"{link} names no heading"


@each_page
def test_named_commands_exist(page: Path) -> None:
    text = page.read_text()
    named = {name for block in FENCED.findall(text) for name in COMMAND.findall(block)}
    assert named | set(SPAN.findall(FENCED.sub("", text))) <= set(COMMANDS)


@each_page
def test_command_lines_can_be_typed_as_printed(page: Path) -> None:
    if page.name == "cli.md":
        return  # shows what a command takes, not a line to type
    for block in FENCED.findall(page.read_text()):
        for line in TYPED.findall(block):
            words = shlex.split(line.partition("|")[0], comments=True)
            assert words[0] in COMMANDS, f"no command in: sprat {line}"
            if parser := parser_of(words[0]):
                parser.parse_args(words[1:])


@each_page
def test_named_variables_exist(page: Path) -> None:
    assert set(re.findall(r"SPRAT_[A-Z_]+", page.read_text())) <= VARIABLES


def test_recovery_commands_run_as_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("SPRAT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    open_store(f"sqlite:///{tmp_path}/sprat.db").pool("work").push(1)
    page = (TOP / "docs" / "operate" / "recovery.md").read_text()
    commands = "\n".join(SHELL.findall(page))
    done = subprocess.run(
        ["sh", "-ec", commands], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "work: skipped, it has no handler" in done.stdout
    for entry in ("@reboot", "OnBootSec=10", "RunAtLoad"):
        assert entry in done.stdout


def test_every_guarantee_names_tests_that_exist() -> None:
    page = TOP / "docs" / "guarantees.md"
    named = re.findall(r"\[(test_\w+)\]\(([^)]+)\)", page.read_text())
    for name, file in named:
        assert f"def {name}(" in (page.parent / file).read_text(), f"{file} has no {name}"
    promises = re.split(r"^(?=- )", page.read_text(), flags=re.MULTILINE)[1:]
    bare = [promise for promise in promises if not re.search(r"\[test_\w+\]", promise)]
    assert promises
    assert not bare


def test_every_page_is_in_the_index() -> None:
    index = TOP / "docs" / "README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    pages = {page for page in PAGES if page.is_relative_to(index.parent) and page != index}
    assert pages | set(TOP.glob("examples/*/README.md")) <= linked


@pytest.mark.parametrize("page", DECISIONS, ids=name_of)
def test_a_decision_tells_context_choice_and_cost(page: Path) -> None:
    headings = HEADING.findall(page.read_text())
    assert headings[1:] == ["Context", "Choice", "Cost"]


@pytest.mark.parametrize("thing", [Task, Job, Store, WorkPool, Workers], ids=lambda t: t.__name__)
def test_every_public_method_is_in_the_reference(thing: type) -> None:
    page = (TOP / "docs" / "reference" / "python.md").read_text()
    section = page.split(f"## {thing.__name__}\n")[1].split("\n## ")[0]
    methods = [name for name, _ in inspect.getmembers(thing, inspect.isfunction)]
    missing = [name for name in methods if name[0] != "_" and f"`{name}(" not in section]
    assert not missing


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_examples_run_as_printed(page: Path, tmp_path: Path) -> None:
    code = "\n".join(PYTHON.findall(page.read_text()))
    assert code
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(compile(code, name_of(page), "exec"), {"__name__": "example"})
    finally:
        os.chdir(before)
