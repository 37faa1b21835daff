"""One job in a forked child: the worker stays alive, answers for it, and can stop it. (A machine
runs an action that it may have to stop in the same way.)

The child leads a process group. When the job is over or stopped, the group is killed: a job leaves
nothing behind, unless it starts it in a session of its own. The child is also on a *leash*, a pipe
of which the worker holds the other end. When the worker dies the kernel closes that end, and kills
the group: a job whose worker is gone is somebody else's by now. (Linux; elsewhere it runs on, and
its result goes nowhere.)
"""

from __future__ import annotations

import os
import select
import sys

from sprat.core import jsontext
from sprat.core.runtime import runtime
from sprat.worker.processor import Outcome, failed

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from collections.abc import Callable
else:
    import _signal as signal  # without its enums, which are a tenth of Python's own start

END = b"\n"  # of an answer; JSON text holds none


class JobProcess:
    """A running job: something that is called there and says how it ended."""

    def __init__(self, work: Callable[[], Outcome]) -> None:
        self._answer, write = os.pipe()
        leash, self._hold = os.pipe()
        self._heard = b""
        self.pid = runtime.fork()
        if self.pid == 0:
            os.close(self._hold)
            _be_the_child(work, write, leash)
        os.close(write)
        os.close(leash)
        _lead_a_group(self.pid)  # whichever of the two is first
        self._poll = select.poll()
        self._poll.register(self._answer, select.POLLIN)

    def wait(self, seconds: float, bell: int | None = None) -> Outcome | None:
        """How the job ended, or None when it is still running after this long, or when the
        descriptor `bell` became readable."""
        if bell is not None and not self._is_first(bell, seconds):
            return None
        if not self._hears_the_end(0.0 if bell is not None else seconds):
            # It may have died while a process that it forked keeps its end of the pipe open.
            if not self._is_dead():
                return None
            self._hears_the_end(0)  # what it said since we listened
        return self._ended()

    def _is_first(self, bell: int, seconds: float) -> bool:
        """Wait; False when the bell rang, and the job has not answered."""
        self._poll.register(bell, select.POLLIN)
        try:
            ready = [descriptor for descriptor, _ in self._poll.poll(seconds * 1000)]
        finally:
            self._poll.unregister(bell)
        return self._answer in ready or bell not in ready

    def _hears_the_end(self, seconds: float) -> bool:
        """Listen, and say whether nothing more will come."""
        while self._poll.poll(seconds * 1000):
            part = os.read(self._answer, 1 << 16)
            self._heard += part
            if not part or part.endswith(END):
                return True
            seconds = 1.0
        return False

    def kill(self) -> None:
        """Stop the job and everything that it started."""
        self._ended()

    def _is_dead(self) -> bool:
        flags = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, flags) is not None

    def _ended(self) -> Outcome:
        try:
            os.killpg(self.pid, signal.SIGKILL)  # before it is waited for: the number is still its
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self._answer)
        os.close(self._hold)
        try:
            return Outcome.of(jsontext.loads(self._heard.decode(errors="surrogatepass")))
        except ValueError:
            return Outcome(ok=False, error=f"the job's process {_how(status)} without an answer")


def _how(status: int) -> str:
    if os.WIFSIGNALED(status):
        return f"was ended by {signal_name(os.WTERMSIG(status))}"
    return f"exited with code {os.WEXITSTATUS(status)}"


def signal_name(number: int) -> str:
    from signal import Signals

    try:
        return Signals(number).name
    except ValueError:
        return f"signal {number}"


def _be_the_child(work: Callable[[], Outcome], write: int, leash: int) -> None:
    """Run the job, write the outcome, and leave without any of the parent's clean-up."""
    code = 1
    try:
        _lead_a_group(0)
        _put_on(leash)
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        outcome = jsontext.dumps(_outcome(work)).encode(errors="surrogatepass") + END
        finish_triggers()
        _flush()
        while outcome:
            outcome = outcome[os.write(write, outcome) :]
        code = 0
    finally:
        _flush()
        os._exit(code)


def _outcome(work: Callable[[], Outcome]) -> Outcome:
    try:
        return work()
    except BaseException as error:  # noqa: BLE001  (it ends here, and the worker reports it)
        return failed(error)


def _lead_a_group(pid: int) -> None:
    try:
        os.setpgid(pid, pid)
    except OSError:
        pass  # it does already, or has ended


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


def finish_triggers() -> None:
    """Wait for what this process' pushes have cued in its own loop: it is about to leave without
    Python's goodbyes, which would wait."""
    triggers = sys.modules.get("sprat.triggers.events")
    if triggers is not None:
        triggers.finish()


def _flush() -> None:
    import sys

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):
            pass
