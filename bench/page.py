"""The generated parts of docs/benchmarks.md, each between the marks of its command."""

from __future__ import annotations

from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"


def write(command: str, text: str) -> None:
    begin, end = f"<!-- begin: written by `{command}` -->", f"<!-- end: written by `{command}` -->"
    page = PAGE.read_text(encoding="utf-8")
    head, found, rest = page.partition(begin)
    _, ended, tail = rest.partition(end)
    if not (found and ended):
        raise SystemExit(f"{PAGE} has lost its marks {begin!r} and {end!r}")
    PAGE.write_text(f"{head}{begin}\n\n{text}\n\n{end}{tail}", encoding="utf-8")
