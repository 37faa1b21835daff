"""The directory of one running cluster, and its control groups; gone when the cluster is."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waiting import until

PREFIX = "sprat-cluster-"
CGROUPS = Path("/sys/fs/cgroup")


@contextmanager
def run_directory() -> Iterator[Path]:
    """A new directory. What runs that were killed left behind is cleared away first."""
    for left in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        if not _is_used(left):
            _remove(left)
    place = Path(tempfile.mkdtemp(prefix=PREFIX))
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for hierarchy in _hierarchies():
            (hierarchy / place.name).mkdir()
        try:
            yield place
        finally:
            _remove(place)


def _is_used(place: Path) -> bool:
    """Does the one that made it still hold its lock?"""
    try:
        with (place / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return False
    except OSError:
        return True


def _hierarchies() -> list[Path]:
    """Where control groups are made: one tree, or with version 1 a tree for each resource."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [tree for tree in CGROUPS.iterdir() if (tree / "cgroup.procs").exists()]


def _remove(place: Path) -> None:
    for hierarchy in _hierarchies():
        ours = hierarchy / place.name
        until(f"the end of {ours}", lambda ours=ours: _is_removed(ours))
    shutil.rmtree(place)


def _is_removed(group: Path) -> bool:
    """Remove a control group and all in it, if the kernel has noticed that nobody is there."""
    if not group.exists():
        return True
    try:
        for inner in (path for path in group.iterdir() if path.is_dir()):
            _is_removed(inner)
        group.rmdir()
    except OSError:
        return False
    return True
