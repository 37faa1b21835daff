"""JSONL: one payload a line, from a file or standard input, read twice."""

from __future__ import annotations

import json
import sys

from sprat.core import payload
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

MAX_LINE = 8 * payload.MAX_BYTES  # of bytes; escapes make a payload's text longer


def readable(path: str) -> BinaryIO:
    """The file; standard input is copied to a temporary one, so that it can be read again."""
    try:
        return _copied() if path == "-" else open(path, "rb")
    except FileNotFoundError:
        raise InvalidInput(f"there is no file {path}") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from None


def standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise InvalidInput("standard input is closed: there is nothing to read")
    return sys.stdin.buffer


def _copied() -> BinaryIO:
    import shutil
    import tempfile

    copy = tempfile.TemporaryFile()  # noqa: SIM115  (its caller closes it)
    shutil.copyfileobj(standard_input(), copy)
    return copy


def each_payload(file: BinaryIO, path: str) -> Iterator[Any]:
    """Every payload from the start of the file, checked; empty lines are passed over."""
    try:
        file.seek(0)
    except OSError:
        raise InvalidInput(f"{path} cannot be read twice: use --file - and feed it in") from None
    name = "standard input" if path == "-" else path
    for number, line in enumerate(_lines(file, name), 1):
        if line.strip():
            try:
                value = json.loads(line)
                payload.encode(value, "payload")
            except RecursionError:
                raise InvalidInput(f"{name}, line {number}: nested too deeply") from None
            except InvalidInput as error:
                raise InvalidInput(f"{name}, line {number}: {error}") from None
            except ValueError as error:
                raise InvalidInput(f"{name}, line {number} is not JSON: {error}") from None
            yield value


def _lines(file: BinaryIO, name: str) -> Iterator[bytes]:
    """Lines of bounded length: a file without line ends is not read into memory whole."""
    number = 0
    while line := file.readline(MAX_LINE):
        number += 1
        if len(line) == MAX_LINE and not line.endswith(b"\n"):
            raise InvalidInput(f"{name}, line {number} is longer than any payload may be")
        yield line
