"""Tries what a worker would do first (import the handler, find the command), in a process of its
own that is started as workers are: user code never runs inside the command that asks."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from sprat.core.errors import SpratError
from sprat.core.model import PoolSettings
from sprat.launchers.process.launcher import ENVIRONMENT
from sprat.worker.processor import load

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATIENCE_SECONDS = 60.0
COULD_NOT = 3  # the exit code that means: standard output says why


def complaint(settings: PoolSettings) -> str | None:
    """Why workers of a pool with these settings could not begin, or None."""
    if not settings.has_processor or settings.launcher != "process":
        return None  # in an image it is the image's code that is imported
    try:
        ran = subprocess.run(
            [sys.executable, "-P", "-m", "sprat.cli.probe"],
            input=json.dumps(settings.as_dict()),
            capture_output=True,
            text=True,
            env=_environment(settings),
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{settings.handler} is not imported after {PATIENCE_SECONDS:.0f} s"
    if ran.returncode == COULD_NOT:
        return ran.stdout.splitlines()[-1]
    if ran.returncode:
        last = (ran.stderr.strip().splitlines() or ["without a word"])[-1]
        return f"importing {settings.handler} ended the process: {last}"
    return None


def _environment(settings: PoolSettings) -> dict[str, str]:
    wanted = ENVIRONMENT.union(settings.environment)
    return {k: v for k, v in os.environ.items() if k in wanted or k.startswith("SPRAT_")}


def doubts(settings: PoolSettings) -> Iterator[str]:
    """What is allowed, and seldom meant."""
    if settings.has_processor and settings.max_workers == 0:
        yield "max_workers is 0, so no worker is started for it"
    if settings.launcher == "process":
        for name in settings.environment:
            if name not in os.environ:
                yield f"environment names {name}, which is not set here: jobs run without it"


def missing_program(program: str, directory: str | None = None) -> str | None:
    """Why a program cannot be run in a directory (None: in this one), or None."""
    import shutil

    path = os.path.join(directory or "", program) if os.path.dirname(program) else program
    if shutil.which(path):
        return None
    if os.path.isfile(path):
        return f"{program} may not be executed: chmod +x {program}"
    return f"there is no program {program}"


def main() -> int:
    settings = PoolSettings(**json.loads(sys.stdin.read()))
    try:
        load(settings)
        wrong = missing_program(settings.command[0]) if settings.command else None
    except SpratError as error:
        wrong = str(error)
    if wrong is None:
        return 0
    print("\n" + " ".join(wrong.split()))
    return COULD_NOT


if __name__ == "__main__":
    sys.exit(main())
