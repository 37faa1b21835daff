"""Commands as a user calls them: in an empty directory, in this process or in one of their own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from sprat import open_store
from sprat.cli import main
from sprat.store.store import Store

JOBS = """\
import time

def double(payload):
    return 2 * payload["n"]

def fail(payload):
    raise ValueError("no good")

def slow(payload):
    time.sleep(60)

def bystander(payload):
    print("a job may print", flush=True)

not_a_function = 3
"""
CONFIG = """\
pools:
  numbers:
    handler: jobs:double
    isolation: none
    max_workers: 2
    start_on_push: false
"""


@dataclass
class Answer:
    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        return json.loads(self.out)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current directory, with nothing in it but jobs.py and sprat.yml."""
    monkeypatch.chdir(tmp_path)
    for name in list(os.environ):
        if name.startswith("SPRAT_") and name != "SPRAT_LAUNCH_WHEN_SATURATED":
            monkeypatch.delenv(name)
    monkeypatch.delenv("COLUMNS", raising=False)
    (tmp_path / "jobs.py").write_text(JOBS)
    (tmp_path / "sprat.yml").write_text(CONFIG)
    return tmp_path


@pytest.fixture
def sprat(place: Path, capsys: pytest.CaptureFixture[str]) -> Callable[..., Answer]:
    """Runs a command in this process."""

    def sprat(*arguments: str) -> Answer:
        capsys.readouterr()
        code = main.main(arguments)
        said = capsys.readouterr()
        return Answer(code, said.out, said.err)

    return sprat


@pytest.fixture
def process(place: Path) -> Callable[..., Answer]:
    """Runs a command in a process of its own."""

    def process(*arguments: str, **options: Any) -> Answer:
        options = {"capture_output": True, "text": True, "timeout": 60, **options}
        done = subprocess.run([sys.executable, "-m", "sprat", *arguments], check=False, **options)
        return Answer(done.returncode, done.stdout, done.stderr)

    return process


@pytest.fixture
def store(place: Path) -> Store:
    """The store that the commands use, made by `sprat apply --no-import`."""
    assert main.main(["apply", "--no-import"]) == 0
    return open_store("sqlite:///sprat.db")
