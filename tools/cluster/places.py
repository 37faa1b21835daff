"""Where things are: what is built is kept outside the checkout, so that every checkout finds it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def cache() -> Path:
    """Programs and images that were built once."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sprat-kubernetes"


def install(*packages: str) -> None:
    """Debian's packages, where they are missing."""
    if subprocess.run([ROOT / "tools" / "packages", *packages], check=False).returncode:
        raise SystemExit(1)  # it has said why
