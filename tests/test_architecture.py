"""The architecture page and the glossary agree with the code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from test_layout import MODULES, SOURCE

import sprat
from tools import architecture

TOP = Path(__file__).parent.parent
PAGE = (TOP / "docs" / "architecture.md").read_text()
GLOSSARY = (TOP / "docs" / "glossary.md").read_text()
PYTHON = (TOP / "docs" / "reference" / "python.md").read_text()

FILE = re.compile(r"`([\w.*-]+(?:/[\w.*-]+)*(?:/|\.(?:py|sql|lua|md|yaml|html|js)))`")
ENTRY = re.compile(r"^- \*\*(.+?)\*\*", re.MULTILINE)
ROWS = PAGE.split("## Where to change what")[1].split("\n## ")[0]
# Words that were names in the code once
RETIRED = {"nest", "clerk", "doorbell", "errand", "vigil", "pulse", "lobby", "keeper", "seat"}


def entries() -> set[str]:
    """The terms that the glossary defines: several may share an entry, as **a**, **b**."""
    lines = [line for line in GLOSSARY.splitlines() if line.startswith("- **")]
    return {term for line in lines for term in re.findall(r"\*\*(.+?)\*\*", line)}


def public_classes() -> set[str]:
    """The classes that the Python reference names."""
    classes = {
        node.name
        for module in MODULES
        for node in module.tree.body
        if isinstance(node, ast.ClassDef)
    }
    return classes & set(re.findall(r"\b[A-Z]\w+", " ".join(re.findall(r"`[^`]*`", PYTHON))))


def test_the_generated_part_is_up_to_date() -> None:
    assert architecture.with_generated_part(PAGE) == PAGE, "run `make reference`"


@pytest.mark.parametrize("name", sorted(set(FILE.findall(PAGE))))
def test_a_file_on_the_page_exists(name: str) -> None:
    assert [*SOURCE.glob(name), *TOP.glob(name)], f"neither in src/sprat nor at the top: {name}"


def test_the_page_says_where_to_change_what() -> None:
    rows = [line for line in ROWS.splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) >= 15


@pytest.mark.parametrize(
    "name", sorted({m.name for m in MODULES if m.path.name == "__init__.py" and m.name})
)
def test_a_package_is_in_the_glossary(name: str) -> None:
    assert f"`{name.replace('.', '/')}`" in entries()


@pytest.mark.parametrize("name", sorted({*sprat.__all__, *public_classes()}))
def test_a_public_name_is_in_the_glossary(name: str) -> None:
    assert f"`{name}`" in entries()


def test_glossary_entries_are_sorted_and_plain() -> None:
    for section in GLOSSARY.split("\n## ")[1:]:
        terms = [term.strip("`").casefold() for term in ENTRY.findall(section)]
        assert terms == sorted(terms)
    assert not RETIRED & entries()
