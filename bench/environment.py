"""The throw-away virtual environments of what we measure against."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PINNED = ("apsw==3.54.1.0", "huey==3.5.4", "litequeue==0.9", "persist-queue==1.1.0")
RQ = ("rq==2.12.0", "redis==8.1.0")
FLATMACHINES = ("flatmachines==4.2.1",)


class NoPython(Exception):
    """This machine has no Python that is new enough."""


def python(pinned: Sequence[str] = PINNED, base: str = sys.executable) -> str:
    """The interpreter of one with these packages; made at the first call, kept in the user's
    cache directory."""
    prefix, version = about(base)
    name = hashlib.sha256(f"{prefix} {' '.join(pinned)}".encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "sprat-bench" / f"python{version}-{name}"
    interpreter = place / "bin" / "python"
    if not (place / "complete").exists():
        print(f"installing {', '.join(pinned)} in {place}", file=sys.stderr)
        subprocess.run([base, "-m", "venv", "--clear", str(place)], check=True)
        quiet = ["-q", "--disable-pip-version-check"]
        subprocess.run([str(interpreter), "-m", "pip", "install", *quiet, *pinned], check=True)
        (place / "complete").touch()
    return str(interpreter)


def newer_python(wanted: tuple[int, int]) -> str:
    """The first one on the path that is at least this new; pyenv's count as being on it."""
    names = [f"python{wanted[0]}.{minor}" for minor in range(wanted[1], wanted[1] + 8)]
    found = [sys.executable, *filter(None, map(shutil.which, ["python3", *names]))]
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for one in [*found, *map(str, sorted(pyenv.glob("versions/*/bin/python")))]:
        try:
            version = tuple(map(int, about(one)[1].split(".")))
        except (OSError, subprocess.CalledProcessError):  # a shim of pyenv with nothing behind it
            continue
        if version >= wanted:
            return one
    raise NoPython(f"it needs Python {wanted[0]}.{wanted[1]} or newer, and none is on the path")


def about(interpreter: str) -> tuple[str, str]:
    """Where an interpreter lives, and its version in two numbers."""
    program = "import sys; print(sys.base_prefix, '%d.%d' % sys.version_info[:2])"
    told = subprocess.run([interpreter, "-c", program], capture_output=True, text=True, check=True)
    prefix, version = told.stdout.split()
    return prefix, version


def machine() -> str:
    """The class of machine, not its name."""
    return f"{os.cpu_count()} cores, {platform.system()} {platform.machine()}"


def fsync_seconds() -> float:
    """What one durable write costs where the benchmarks keep their files."""
    with tempfile.NamedTemporaryFile(buffering=0) as file:
        costs: list[float] = []
        for _ in range(20):
            began = time.perf_counter()
            file.write(b"x" * 4096)
            os.fsync(file.fileno())
            costs.append(time.perf_counter() - began)
    return sorted(costs)[10]
