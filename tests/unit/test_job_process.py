"""A job in a child of its own: its answer is heard, whenever it comes."""

from __future__ import annotations

import os

from sprat.worker.job_process import JobProcess
from sprat.worker.processor import Outcome


def test_answer_that_comes_between_two_looks_is_heard() -> None:
    wait_for, go = os.pipe()

    class Late(JobProcess):
        """Ends after it was found to be silent, and before it is found to be dead."""

        def _is_dead(self) -> bool:
            os.write(go, b".")
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            return super()._is_dead()

    def work() -> Outcome:
        os.read(wait_for, 1)
        return Outcome(ok=True, result="done")

    outcome = Late(work).wait(0)
    assert outcome == Outcome(ok=True, result="done")


def test_child_that_says_nothing_has_failed() -> None:
    outcome = JobProcess(lambda: os._exit(3)).wait(30)
    assert outcome is not None
    assert outcome.error == "the job's process exited with code 3 without an answer"
