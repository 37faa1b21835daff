"""Whether this machine is saturated: more workers would only slow down those that it runs.

Workers that wait (for I/O, for work, for a lock) do not count: pressure and runnable tasks are
about the processor only.
"""

from __future__ import annotations

import os

from sprat.core.model import Saturation
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Read = Callable[[str], str]  # the text of a file, empty where there is none

MOST_PRESSURE = 60.0  # % of the last 10 s in which a task waited for a processor
MOST_RUNNABLE = 4.0  # tasks per core that run or wait for a processor
LEAST_MEMORY = 10.0  # % available
KEPT_SECONDS = 0.1  # a burst of passes reads the files once

# In a container the first file is about the container, the second about the whole machine.
PRESSURE = ("/sys/fs/cgroup/cpu.pressure", "/proc/pressure/cpu")
GROUP = "/sys/fs/cgroup/memory."


def saturation() -> Saturation | None:
    """What this machine has too little of; None: nothing, or this system does not say."""
    if os.environ.get("SPRAT_LAUNCH_WHEN_SATURATED"):
        return None
    now = runtime.monotonic()
    if now - _last.at > KEPT_SECONDS:
        _last.found, _last.at = measured(_read, cores()), now
    return _last.found


def cores() -> int:
    _last.cores = _last.cores or os.cpu_count() or 1
    return _last.cores


class _Last:
    """What this process found last."""

    at = float("-inf")
    found: Saturation | None = None
    cores = 0


_last = _Last()


def measured(read: Read, cores: int) -> Saturation | None:
    """The same from given readings. One worker per core cannot be what saturates the processor,
    but it may be what the memory has no room for."""
    if cause := _processor(read, cores):
        return Saturation(cause=cause, may_run=cores)
    cause = _memory(read)
    return None if cause is None else Saturation(cause=cause, may_run=1)


def _processor(read: Read, cores: int) -> str | None:
    """Pressure is an average that follows a burst after some seconds, the tasks are those of this
    moment."""
    share = next((float(said) for path in PRESSURE if (said := _field(read(path), "avg10="))), 0.0)
    if share > MOST_PRESSURE:
        return f"CPU pressure {share:.0f} %"
    runnable = read("/proc/loadavg").partition("/")[0].rpartition(" ")[2]
    tasks = (int(runnable) - 1) / cores if runnable.isdigit() else 0.0  # without this process
    return f"{tasks:.1f} runnable tasks per core" if tasks > MOST_RUNNABLE else None


def _memory(read: Read) -> str | None:
    """The machine's memory, and what its control group may have of it. What is but a cache of
    files can be given back, and counts as available."""
    about = read("/proc/meminfo")
    shares = [_share(_field(about, "MemAvailable:"), _field(about, "MemTotal:"))]
    most, used = read(f"{GROUP}max").strip(), read(f"{GROUP}current").strip()
    if most.isdigit() and used.isdigit():
        cached = int(_field(read(f"{GROUP}stat"), "inactive_file") or 0)
        shares.append(_share(str(max(0, int(most) - int(used) + cached)), most))
    least = min(shares)
    return f"{least:.0f} % of the memory is available" if least < LEAST_MEMORY else None


def _share(available: str, total: str) -> float:
    return 100.0 * int(available) / int(total) if available and int(total or 0) else 100.0


def _field(text: str, name: str) -> str:
    """The word after the first occurrence of the name, or nothing."""
    words = text.partition(name)[2].split(maxsplit=1)
    return words[0] if words else ""


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
