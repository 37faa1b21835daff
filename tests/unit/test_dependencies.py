"""Each package that the source imports is declared, and each declared one is imported."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# uvicorn imports these by the names of its settings.
BY_NAME = {"httptools", "uvloop"}
MODULES = {"ruamel.yaml": "ruamel"}


def declared() -> set[str]:
    extras = PROJECT["optional-dependencies"]
    chosen = [extras[name] for name in extras if name not in ("all", "dev")]
    wanted = [*PROJECT["dependencies"], *(one for extra in chosen for one in extra)]
    names = {re.split(r"[\[<>=!~ ;]", requirement)[0] for requirement in wanted}
    return {MODULES.get(name, name) for name in names}


def imported() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "src").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found.add((node.module or "").partition(".")[0])
    return found - set(sys.stdlib_module_names) - {"sprat"}


def test_declared_dependencies_are_the_imported_ones() -> None:
    assert declared() == imported() | BY_NAME


def test_all_and_dev_have_every_extra() -> None:
    extras = PROJECT["optional-dependencies"]
    others = ",".join(name for name in extras if name not in ("all", "dev"))
    assert extras["all"] == [f"sprat[{others}]"]
    assert f"sprat[{others}]" in extras["dev"]
