"""Where things are: what is built is kept outside the checkout, so that every checkout finds it."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent.parent


def cache() -> Path:
    """Programs and images that were built once."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "sprat-kubernetes"
