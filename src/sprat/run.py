"""`python -m sprat.run --machine X --input JSON --execution-id ID` is `sprat run X ...`, for those
who start machines as processes."""

from __future__ import annotations

import sys

from sprat.__main__ import leave
from sprat.cli.main import main

FLAG = "--machine"


def as_command(arguments: list[str]) -> list[str]:
    """The same as arguments of `sprat`: the machine comes first, and has no flag."""
    words = [part for word in arguments for part in _split(word)]
    if FLAG in words[:-1]:
        place = words.index(FLAG)
        words = [words[place + 1], *words[:place], *words[place + 2 :]]
    return ["run", *words]


def _split(word: str) -> list[str]:
    return word.split("=", 1) if word.startswith(f"{FLAG}=") else [word]


if __name__ == "__main__":
    leave(main(as_command(sys.argv[1:])))
