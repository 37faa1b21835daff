"""Reads a file that a person wrote: UTF-8, of a sensible size, one sentence when it is not."""

from __future__ import annotations

from sprat.core.errors import InvalidInput


def read(path: str, max_bytes: int, *, missing: str) -> str:
    """The text; `missing` says what to do when there is no such file."""
    try:
        with open(path, "rb") as file:
            raw = file.read(max_bytes + 1)
    except FileNotFoundError:
        raise InvalidInput(f"there is no {path}: {missing}") from None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise InvalidInput(f"{path} cannot be read: {why}") from None
    if len(raw) > max_bytes:
        raise InvalidInput(f"{path} is larger than {max_bytes:,} bytes")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = raw[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        raise InvalidInput(f"{path}, line {line}, column {column}: this is not UTF-8") from None
