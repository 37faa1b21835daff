"""The README and the start page, typed as printed: one fresh directory each, from top to bottom."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from patience import eventually

from sprat.store.open_store import open_store

TOP = Path(__file__).parent.parent
PAGES = sorted([*TOP.glob("*.md"), *TOP.glob("docs/**/*.md"), *TOP.glob("examples/**/*.md")])
FENCED = re.compile(r"^```\w*\n(.*?)^```", re.MULTILINE | re.DOTALL)
FILE = re.compile(r"# (\w+\.(?:py|yml))\b")
INSTALL = re.compile(r"pip install ([^\s`]+)")
# What is another in every run, as it is compared.
VARYING = (
    (re.compile(r"\b[0-9a-f]{28}\b"), "ID"),
    (re.compile(r"\b[\d.]+/(?:s|min)\b"), "RATE"),
    (re.compile(r"\b[\d.]+ (?:ms|s|min)\b"), "TIME"),
    # `sprat watch` counts from its start, and workers leave in their own time.
    (re.compile(r"\b(\d+)/\1 done"), "ALL done"),
    (re.compile(r"\b\d+/\d+ done"), "SOME done"),
    (re.compile(r"\d+( +\S+ +RATE)$"), r"WORKERS\1"),
)


class Session:
    """A reader at a shell: files are saved under their names, commands typed after the prompt."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        kept = {
            name: text
            for name, text in os.environ.items()
            if not name.startswith("SPRAT_") and name != "COLUMNS"
        }
        self._environment = {**kept, "PATH": path, "SPRAT_LAUNCH_WHEN_SATURATED": "1"}

    def read(self, page: Path) -> int:
        """Do what the page prints, and compare; the number of commands."""
        typed = 0
        for block in FENCED.findall(page.read_text()):
            if named := FILE.match(block):
                self._save(named[1], block)
            for command, output in re.findall(r"^\$ (.*)\n((?:[^$].*\n)*)", block, re.MULTILINE):
                self._type(command, output)
                typed += 1
        return typed

    def _save(self, name: str, text: str) -> None:
        """A file that a command wrote already is the one that the page shows."""
        file = self.directory / name
        if file.exists():
            assert file.read_text() == text
        file.write_text(text)

    def _type(self, command: str, printed: str) -> None:
        done = subprocess.run(
            ["sh", "-c", command],
            cwd=self.directory,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
            check=False,
        )
        # `sprat watch` reports failed jobs by its exit code, which the page says.
        assert done.returncode == (1 if "failed:" in printed else 0), done.stdout
        lines = iter(shown(done.stdout))
        # The lines of the page in their order: there may be more, of a slow run, in between.
        missing = [line for line in shown(printed) if line not in lines]
        assert not missing, f"$ {command}\n{done.stdout}"


def shown(output: str) -> list[str]:
    """Lines as they are compared."""
    for pattern, name in VARYING:
        output = re.sub(pattern.pattern, name, output, flags=re.MULTILINE)
    return [" ".join(line.split()) for line in output.splitlines()]


@pytest.mark.parametrize("page", ["README.md", "docs/start.md"])
def test_a_page_can_be_typed_as_printed(page: str, tmp_path: Path) -> None:
    session = Session(tmp_path)
    assert session.read(TOP / page)
    with open_store(f"sqlite:///{tmp_path}/sprat.db") as store:
        eventually(lambda: not store.workers.list(status="active"), "a worker that stays")


@pytest.mark.parametrize(
    ("convert", "has_pictures", "code"),
    [("true", True, 0), ("false", True, 1), ("true", False, 75)],
)
def test_the_shell_recipe_asks_for_free_tries_only_while_there_are_no_pictures(
    convert: str, has_pictures: bool, code: int, tmp_path: Path
) -> None:
    page = (TOP / "docs" / "recipes" / "shell-commands.md").read_text()
    [script] = [block for block in FENCED.findall(page) if block.startswith("#!/bin/sh")]
    for name, body in (("jq", "echo pictures/a.jpg"), ("convert", convert)):
        (tmp_path / name).write_text(f"#!/bin/sh\n{body}\n")
        (tmp_path / name).chmod(0o755)
    if has_pictures:
        (tmp_path / "pictures").mkdir()
    environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "SPRAT_ATTEMPT": "1"}
    done = subprocess.run(["sh", "-c", script], cwd=tmp_path, env=environment, check=False)
    assert done.returncode == code


def test_every_install_line_works_in_a_clone() -> None:
    extras = tomllib.loads((TOP / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    allowed = {".", "../..", "tzdata", *(f"'.[{extra}]'" for extra in extras)}
    found = {line for page in PAGES for line in INSTALL.findall(page.read_text())}
    assert "." in INSTALL.findall((TOP / "README.md").read_text())
    assert found <= allowed
