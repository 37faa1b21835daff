"""What the READMEs of the examples tell people to type works, as it is printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from example import EXAMPLES, PATIENCE, Example

NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/README.md"))


def first_commands(example: Example) -> list[str]:
    block = (example.place / "README.md").read_text().split("```")[1]
    return re.findall(r"^\$ (.*)", block, re.MULTILINE)


def type_in(example: Example, commands: list[str]) -> None:
    """Let a shell run them that finds `python` and `sprat`."""
    path = f"{Path(sys.executable).parent}:{example.environment['PATH']}"
    ran = subprocess.run(
        ["sh", "-e", "-c", "\n".join(commands)], cwd=example.place, timeout=PATIENCE, check=False,
        env={**example.environment, "PATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("example", NAMES, indirect=True)
def test_three_commands_show_it(example: Example) -> None:
    commands = first_commands(example)
    assert len(commands) == 3
    type_in(example, commands)
    example.until_gone()
    assert not example.data("sprat", "status", "--json")["pools"][0]["ready"]
