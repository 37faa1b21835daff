"""Writing a directory of manifests, over what we wrote there before and nothing else."""

from __future__ import annotations

import os
from collections.abc import Mapping

from sprat.core.errors import InvalidInput
from sprat.manifests.parts import HEADER


def write(directory: str, files: Mapping[str, str]) -> None:
    """All of them, or InvalidInput and none."""
    for name in files:
        path = os.path.join(directory, name)
        if os.path.lexists(path) and not _is_ours(path):
            raise InvalidInput(f"{path} is not ours to overwrite: move it, or write elsewhere")
    os.makedirs(directory, exist_ok=True)
    for name, text in files.items():
        draft = os.path.join(directory, f".{name}.new")
        with open(draft, "w") as file:
            file.write(text)
        os.replace(draft, os.path.join(directory, name))


def _is_ours(path: str) -> bool:
    try:
        with open(path) as file:
            return file.read(len(HEADER)) == HEADER
    except (OSError, UnicodeDecodeError):
        return False
