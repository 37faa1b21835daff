"""What a machine worker costs, as a ratio to a worker with a handler in the same run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from test_worker_machine import ONE_JOB

WORKERS = 20
ROUNDS = 3
ECHO = """\
data:
  name: echo
  states:
    start: {type: initial, transitions: [{to: end}]}
    end: {type: final, output: {echo: "{{ input.job }}"}}
"""


@pytest.mark.alone
def test_a_machine_worker_starts_in_less_than_twice_the_cpu_of_a_handler_worker(
    tmp_path: Path,
) -> None:
    """Both forked from a parent that has read everything; the best of some rounds, in turns."""
    process = "    machine: actual_job_processor\n"
    text = ONE_JOB.replace("    action: process\n", process)
    (tmp_path / "job_worker.yml").write_text("data:\n" + text.replace("\n", "\n  "))
    (tmp_path / "echo.yml").write_text(ECHO)
    best = dict.fromkeys(("handler", "machine", "both"), float("inf"))
    for _ in range(ROUNDS):
        for kind in best:
            best[kind] = min(best[kind], milliseconds(tmp_path, kind))
    print(best)
    assert best["machine"] < 2 * best["handler"]
    assert best["both"] < 2 * best["handler"]


def milliseconds(place: Path, kind: str) -> float:
    script = Path(__file__).parent / "forked_workers.py"
    ran = subprocess.run(
        [sys.executable, str(script), str(place), str(WORKERS), kind],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    return float(ran.stdout)
