"""Printing: data on stdout, talk on stderr, tables that fit, colours where they are wanted."""

from __future__ import annotations

import json
import os
import sys

from sprat.core.jsontext import printable
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any, TextIO

WIDTH = 80  # of paragraphs where the width of the terminal is not known
NARROWEST = 8  # a column is not cut to less
RED, GREEN, YELLOW, DIM = "31", "32", "33", "2"


def say(text: str = "", *, flush: bool = False) -> None:
    """Print data to standard output, without what could control the terminal."""
    print(printable(text), flush=flush)


def talk(sentence: str) -> None:
    """Something for the person at the terminal; never in the way of data."""
    print(printable(sentence), file=sys.stderr, flush=True)


def document(value: object) -> None:
    """One JSON document, indented where a person reads it."""
    indent = 2 if sys.stdout is not None and sys.stdout.isatty() else None
    say(json.dumps(plain(value), ensure_ascii=False, indent=indent))


def plain(value: Any) -> Any:
    """Records as mappings, all the way down. A token is a capability: it stays out."""
    if isinstance(value, Record):
        return {k: plain(v) for k, v in value.as_dict().items() if k != "token"}
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def table(headings: Sequence[str], rows: Iterable[Sequence[object]], *, narrow: int = -1) -> None:
    """Columns under their headings, numbers to the right. Where the terminal (or COLUMNS) is too
    narrow, the column `narrow` gives way: its cells are cut, those of the first column, which are
    names, get a line of their own. Where that is not enough, a line for each cell."""
    cells = [[one_line(value) for value in row] for row in rows]
    widths = [max(map(columns, column)) for column in zip(headings, *cells, strict=True)]
    most = _asked_width() or _terminal_width(1)
    excess = 0 if most is None else sum(widths) + 2 * (len(widths) - 1) - most
    if excess > 0:
        widths[narrow] -= excess
        if widths[narrow] < NARROWEST:
            _list(headings, cells)
            return
    to_the_right = [_are_numbers([row[n] for row in cells]) for n in range(len(widths))]
    for row in ([*headings], *cells):
        if columns(row[0]) > widths[0]:
            print(row[0])
            row[0] = ""
        parts = [
            _padded(cut(text, size), size, to_the_right=right)
            for text, size, right in zip(row, widths, to_the_right, strict=True)
        ]
        print("  ".join(parts).rstrip())


def _list(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    names = [heading.lower() for heading in headings]
    for n, row in enumerate(rows):
        print(end="\n" if n else "")
        facts(zip(names, row, strict=True))


def _padded(text: str, size: int, *, to_the_right: bool) -> str:
    blank = " " * (size - columns(text))
    return blank + text if to_the_right else text + blank


def paragraph(text: str, indent: int = 0) -> None:
    """One thing to say, on as many lines of the terminal as it takes."""
    import textwrap

    first = " " * indent
    say(textwrap.fill(text, width(), initial_indent=first, subsequent_indent=first + "    "))


def facts(pairs: Iterable[tuple[str, object]]) -> None:
    """Name and value, a line each; those without a value are left out."""
    known = [(name, value) for name, value in pairs if value not in (None, "", (), [], {})]
    size = max((len(name) for name, _ in known), default=0)
    for name, value in known:
        print(f"{name:<{size}}  {one_line(value)}")


def one_line(value: object) -> str:
    """Any value as one line that cannot move the terminal's cursor."""
    if value is None:
        return "-"
    text = value if isinstance(value, str) else json.dumps(plain(value), ensure_ascii=False)
    return "".join(c if c.isprintable() else " " for c in text).strip()


def cut(text: str, size: int) -> str:
    if columns(text) <= size:
        return text
    text = text[: size - 3]
    while columns(text) > size - 3:
        text = text[:-1]
    return text + "..."


def columns(text: str) -> int:
    """How wide a terminal shows it: ideographs take two columns, accents of their own none."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 1 + (east_asian_width(c) in "WF") for c in text)


def width(descriptor: int = 1) -> int:
    return _asked_width() or _terminal_width(descriptor) or WIDTH


def _asked_width() -> int | None:
    text = os.environ.get("COLUMNS", "")
    return int(text) if text.isascii() and text.isdigit() else None


def _terminal_width(descriptor: int) -> int | None:
    """None where it is no terminal, or one that does not know."""
    try:
        return os.get_terminal_size(descriptor).columns or None
    except (OSError, ValueError):
        return None


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    where = stream or sys.stdout
    if not colour or os.environ.get("NO_COLOR") or where is None or not where.isatty():
        return text
    return f"\033[{colour}m{text}\033[0m"


def number(n: int, one: str, many: str = "") -> str:
    """1 job, 2 jobs."""
    return f"{n:,} {one if n == 1 else many or one + 's'}"


def duration(seconds: float | None) -> str:
    """A time span as people say it: 0.3 s, 12 s, 5 min, 3 h, 2 d."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s" if 0 < seconds < 9.95 else f"{seconds:.0f} s"
    for unit, size, end in (("min", 60, 3600), ("h", 3600, 86400)):
        if seconds < end:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds / 86400:.0f} d"


def rate(per_second: float) -> str:
    """How many a second, or a minute where that is readable."""
    if per_second >= 1 or per_second == 0:
        return (
            f"{per_second:,.0f}/s" if per_second >= 10 or not per_second else f"{per_second:.1f}/s"
        )
    return f"{60 * per_second:.1f}/min"


def _are_numbers(column: list[str]) -> bool:
    return all(cell == "-" or cell[:1].isdigit() for cell in column) and any(
        cell.replace(",", "").isdigit() for cell in column
    )
