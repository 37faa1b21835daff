"""What is taken for a saturated machine."""

from __future__ import annotations

import pytest

from sprat.core import machine_load
from sprat.core.machine_load import measured
from sprat.core.model import Saturation

CALM = {
    "/proc/pressure/cpu": "some avg10=12.50 avg60=83.00 avg300=90.00 total=1\nfull avg10=99.00\n",
    "/proc/loadavg": "40.00 40.00 40.00 17/900 1234\n",
    "/proc/meminfo": "MemTotal:  1000 kB\nMemFree:  10 kB\nMemAvailable:  500 kB\n",
}


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, None),
        (CALM, None),
        ({**CALM, "/proc/pressure/cpu": "some avg10=83.4 avg60=0"}, "CPU pressure 83 %"),
        ({**CALM, "/sys/fs/cgroup/cpu.pressure": "some avg10=70.0"}, "CPU pressure 70 %"),
        ({"/proc/loadavg": "0.00 0.00 0.00 18/900 1234\n"}, "4.2 runnable tasks per core"),
        ({**CALM, "/proc/loadavg": "0.00 0.00 0.00 90/900 1"}, "22.2 runnable tasks per core"),
        (
            {**CALM, "/proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 90 kB\n"},
            "9 % of the memory is available",
        ),
    ],
)
def test_saturation_is_named(files: dict[str, str], said: str | None) -> None:
    assert cause(files) == said


def cause(files: dict[str, str]) -> str | None:
    found = measured(lambda path: files.get(path, ""), 4)
    return None if found is None else found.cause


def test_a_busy_processor_may_run_a_worker_per_core_and_scarce_memory_one() -> None:
    full = {"/proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 90 kB\n"}
    busy = measured(lambda _: "some avg10=83.4", 4)
    scarce = measured(lambda path: full.get(path, ""), 4)
    assert (busy and busy.may_run, scarce and scarce.may_run) == (4, 1)


@pytest.mark.parametrize(
    ("most", "used", "said"),
    [
        ("1000", "950", "5 % of the memory is available"),
        ("1000", "900", None),
        ("max", "950", None),
    ],
)
def test_limit_of_a_container_counts(most: str, used: str, said: str | None) -> None:
    group = {"/sys/fs/cgroup/memory.max": most, "/sys/fs/cgroup/memory.current": used}
    assert cause({**CALM, **group}) == said


def test_caches_of_files_are_not_used_memory() -> None:
    group = {"max": "1000", "current": "950", "stat": "anon 1\ninactive_file 300\n"}
    files = {**CALM, **{f"/sys/fs/cgroup/memory.{name}": text for name, text in group.items()}}
    assert cause(files) is None


def test_saturation_can_be_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    busy = Saturation(cause="CPU pressure 99 %", may_run=4)
    monkeypatch.setattr(machine_load, "measured", lambda *_: busy)
    monkeypatch.delenv("SPRAT_LAUNCH_WHEN_SATURATED")
    assert machine_load.saturation() == busy
    monkeypatch.setenv("SPRAT_LAUNCH_WHEN_SATURATED", "1")
    assert machine_load.saturation() is None


def test_a_burst_of_looks_reads_the_files_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [1000.0]
    looks: list[int] = []
    monkeypatch.delenv("SPRAT_LAUNCH_WHEN_SATURATED", raising=False)
    monkeypatch.setattr(machine_load, "_last", machine_load._Last())
    monkeypatch.setattr(machine_load.runtime, "monotonic", lambda: clock[0])
    monkeypatch.setattr(machine_load, "measured", lambda _, cores: looks.append(cores))
    for moment in (0.0, 0.05, 0.09, 0.2):
        clock[0] = 1000.0 + moment
        assert machine_load.saturation() is None
    assert len(looks) == 2
