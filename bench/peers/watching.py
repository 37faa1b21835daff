"""What processes cost, read from /proc: CPU to the nanosecond, memory without double counting."""

from __future__ import annotations

import os
from pathlib import Path


def family(pid: int) -> list[int]:
    """The process and all that it started, directly or not."""
    found = [pid]
    for one in found:
        try:
            for task in os.listdir(f"/proc/{one}/task"):
                children = Path(f"/proc/{one}/task/{task}/children").read_text(encoding="ascii")
                found += map(int, children.split())
        except OSError:
            continue
    return found


def cpu_seconds(pid: int) -> float:
    """Of the whole family, its threads included; those that ended are lost to it."""
    return sum(_threads(one) for one in family(pid))


def memory_mb(pid: int) -> float:
    """Shared pages are divided between those who share them."""
    return sum(_proportional(one) for one in family(pid)) / 1024


def _threads(pid: int) -> float:
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            text = Path(f"/proc/{pid}/task/{task}/schedstat").read_text(encoding="ascii")
            total += int(text.split()[0])
    except OSError:
        pass
    return total / 1e9


def _proportional(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0
