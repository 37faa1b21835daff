"""Start-up is a feature: CPU time against bare Python, measured side by side in the same run."""

from __future__ import annotations

import os
import statistics
import sys
from pathlib import Path

import pytest

REPEATS = 15
ROUNDS = 3  # a noisy neighbour can spoil one round, hardly three

BARE = "bare Python"
BUDGET = {"import sprat": 1.25, "sprat --help": 1.8, "lean worker": 2.6}

OPEN_STORE = """\
import sprat.store.open_store, sprat.store.sqlite.backend
sprat.store.open_store.open_store("sqlite:///" + {path!r})
"""


def commands(place: Path) -> dict[str, list[str]]:
    return {
        BARE: ["-c", "pass"],
        "import sprat": ["-c", "import sprat"],
        "sprat --help": ["-m", "sprat", "--help"],
        "lean worker": ["-c", OPEN_STORE.format(path=str(place / "fleet.db"))],
    }


def cpu_seconds(arguments: list[str]) -> float:
    """User and system time of one isolated interpreter, its output thrown away."""
    python = [sys.executable, "-I", *arguments]
    silence = [(os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0)]
    pid = os.posix_spawn(sys.executable, python, os.environ, file_actions=silence)
    _, status, usage = os.wait4(pid, 0)
    assert os.waitstatus_to_exitcode(status) == 0, f"{arguments} failed"
    return usage.ru_utime + usage.ru_stime


def ratios(place: Path) -> dict[str, float]:
    """Median CPU time of each command over that of bare Python, taken in turns."""
    todo = commands(place)
    taken: dict[str, list[float]] = {name: [] for name in todo}
    for _ in range(REPEATS):
        for name, arguments in todo.items():
            taken[name].append(cpu_seconds(arguments))
    medians = {name: statistics.median(times) for name, times in taken.items()}
    print({name: f"{1000 * seconds:.1f} ms" for name, seconds in medians.items()})
    return {name: medians[name] / medians[BARE] for name in BUDGET}


@pytest.mark.alone
def test_start_up_stays_within_its_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    best: dict[str, float] = {}
    with capsys.disabled():
        print()
        for arguments in commands(tmp_path).values():
            cpu_seconds(arguments)  # compiled files and the store's schema are made once
        for _ in range(ROUNDS):
            best = {n: min(r, best.get(n, r)) for n, r in ratios(tmp_path).items()}
            if all(best[name] <= BUDGET[name] for name in BUDGET):
                break
        print({name: f"{best[name]:.2f}x of at most {BUDGET[name]}x" for name in BUDGET})
    over = {name: best[name] for name in BUDGET if best[name] > BUDGET[name]}
    assert not over
