"""An example under test: a copy of its directory, run by the commands that its README names."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from patience import PATIENCE, eventually

EXAMPLES = Path(__file__).parent.parent.parent / "examples"
MARKER = "SPRAT_EXAMPLE_UNDER_TEST"


class Example:
    def __init__(self, name: str, place: Path) -> None:
        self.place = place / name
        self._mark = f"{MARKER}={uuid.uuid4().hex}"
        shutil.copytree(EXAMPLES / name, self.place, ignore=shutil.ignore_patterns("data", "out"))
        # As a person has it who calls it for the first time: no store, no model, no directory.
        ours = {k: v for k, v in os.environ.items() if not k.startswith(("SPRAT_", "OPENAI_"))}
        name, _, value = self._mark.partition("=")
        self.log = place / "servers.log"
        self.environment = {**ours, name: value, "SPRAT_LOG": str(self.log), "TMPDIR": str(place)}

    def start(self, *command: str) -> subprocess.Popen[str]:
        """`python SCRIPT ...` or `sprat ...`, in the example's directory."""
        program, *rest = command
        first = ["-m", "sprat"] if program == "sprat" else [program]
        return subprocess.Popen(
            [sys.executable, *first, *rest], cwd=self.place, env=self.environment,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip

    def run(self, *command: str) -> str:
        process = self.start(*command)
        said, complaint = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, complaint
        return said

    def data(self, *command: str) -> Any:
        """What it prints, read as JSON."""
        return json.loads(self.run(*command))

    def processes(self) -> list[int]:
        return list(self._processes())

    def _processes(self) -> Iterator[int]:
        for entry in os.listdir("/proc"):
            try:
                if entry.isdigit() and self._mark in Path(f"/proc/{entry}/environ").read_text():
                    yield int(entry)
            except (OSError, UnicodeDecodeError):
                pass  # it has just ended, or is not ours to read

    def until_gone(self) -> None:
        """All processes leave by themselves."""
        eventually(lambda: not self.processes(), self.processes)

    def end(self) -> None:
        """Stop what is still there, by its id; those that were being forked as well."""
        while found := self.processes():
            for pid in found:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
