"""The throw-away virtual environments of what we measure against."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

PINNED = ("apsw==3.54.1.0", "huey==3.5.4", "litequeue==0.9", "persist-queue==1.1.0")
RQ = ("rq==2.12.0", "redis==8.1.0")
FLATMACHINES = ("flatmachines==4.2.1",)


def python(pinned: Sequence[str] = PINNED) -> str:
    """The interpreter of one with these packages; made at the first call, kept in the user's
    cache directory."""
    version = ".".join(map(str, sys.version_info[:2]))
    name = hashlib.sha256(f"{sys.base_prefix} {' '.join(pinned)}".encode()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    place = cache / "sprat-bench" / f"python{version}-{name}"
    interpreter = place / "bin" / "python"
    if not (place / "complete").exists():
        print(f"installing {', '.join(pinned)} in {place}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(place)], check=True)
        quiet = ["-q", "--disable-pip-version-check"]
        subprocess.run([str(interpreter), "-m", "pip", "install", *quiet, *pinned], check=True)
        (place / "complete").touch()
    return str(interpreter)


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
