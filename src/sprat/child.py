"""One job in a forked child: the worker stays alive, answers for it, and can stop it.

The child is on a *leash*, a pipe of which the worker holds the other end. When the worker dies the
kernel closes that end, and kills the child and all that it started: a job whose worker is gone is
somebody else's by now. (Linux; elsewhere it runs on, and its result goes nowhere.)
"""

from __future__ import annotations

import json
import os
import select
import signal

from sprat.processor import Outcome, attempt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.job import Job
    from sprat.processor import Processor


class Child:
    """A running job. It leads a process group of its own, so that stopping it stops all of it."""

    def __init__(self, processor: Processor, job: Job) -> None:
        self._out, write = os.pipe()
        leash, self._hold = os.pipe()
        self._heard = b""
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self._hold)
            _be_the_child(processor, job, write, leash)
        os.close(write)
        os.close(leash)

    def wait(self, seconds: float) -> Outcome | None:
        """How the job ended, or None when it is still running after this long."""
        while True:
            ready, _, _ = select.select([self._out], [], [], seconds)
            if not ready:
                return None
            part = os.read(self._out, 1 << 16)
            if not part:
                return self._ended()
            self._heard += part
            seconds = 1.0

    def kill(self) -> None:
        """Stop the job and everything that it started."""
        for kill in (os.killpg, os.kill):  # it may not lead its group yet
            try:
                kill(self.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self._ended()

    def _ended(self) -> Outcome:
        os.close(self._out)
        os.close(self._hold)
        _, status = os.waitpid(self.pid, 0)
        try:
            return Outcome.of(json.loads(self._heard))
        except ValueError:
            return Outcome(ok=False, error=f"the job's process {_how(status)} without an answer")


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal.Signals(os.WTERMSIG(status)).name}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def _be_the_child(processor: Processor, job: Job, write: int, leash: int) -> None:
    """Run the job, write the outcome, and leave without any of the parent's clean-up."""
    code = 1
    try:
        os.setpgid(0, 0)
        _put_on(leash)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        outcome = json.dumps(attempt(processor, job)).encode()
        while outcome:
            outcome = outcome[os.write(write, outcome) :]
        code = 0
    finally:
        _flush()
        os._exit(code)


def _put_on(leash: int) -> None:
    """Have the kernel kill this process group when the other end of the pipe is closed."""
    import fcntl

    if not hasattr(fcntl, "F_SETSIG"):
        return
    fcntl.fcntl(leash, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(leash, fcntl.F_SETSIG, signal.SIGKILL)
    fcntl.fcntl(leash, fcntl.F_SETFL, fcntl.fcntl(leash, fcntl.F_GETFL) | os.O_ASYNC)
    if select.select([leash], [], [], 0)[0]:
        os._exit(1)  # it was closed before we listened


def _flush() -> None:
    import sys

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
