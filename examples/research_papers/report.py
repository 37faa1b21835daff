"""Writes what was found out about a paper: as JSON for programs, as Markdown for people."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import prose

OUT = prose.HERE / "out"

PAGE = """\
# {title}

{summary}

- Key terms: {terms}
- Readability: grade {grade}, {words} words
- Catalogue: {catalogue}
- Summarized by: {by}
"""


def write(found: dict[str, Any]) -> dict[str, str]:
    name = found["name"]
    put(OUT / f"{name}.json", json.dumps(found, indent=2) + "\n")
    put(OUT / f"{name}.md", page(found))
    return {"report": f"out/{name}.md"}


def page(found: dict[str, Any]) -> str:
    entry = found["catalogue"]
    return PAGE.format(
        title=found["title"],
        summary=found["summary"],
        terms=", ".join(found["terms"]),
        grade=found["readability"]["grade"],
        words=found["words"],
        catalogue=f"{entry['subject']}, {entry['year']}" if entry else "not listed",
        by=found["summarized_by"],
    )


def put(path: Path, text: str) -> None:
    """Whole or not at all: a job may run twice, and be killed while it writes."""
    path.parent.mkdir(exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
