"""Starts workers as processes of this machine, forked from a fork server (see fork_server.py)."""

from __future__ import annotations

import os
import signal
import sys

from sprat.core.errors import InvalidInput, SpratError
from sprat.core.runtime import runtime
from sprat.fleet.launcher import Launcher
from sprat.launchers.process import wake_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.core.model import PoolSettings

# What a worker gets of the environment besides SPRAT_* and what its pool's settings name.
ENVIRONMENT = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
        *("PYTHONPATH", "PYTHONHOME", "PYTHONUNBUFFERED", "VIRTUAL_ENV", "LD_LIBRARY_PATH"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "SYSTEMROOT"),
        *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
    )
)

MACHINE = "SPRAT_LAUNCH"  # a machine that the workers run (see machines/runtime)


class ProcessLauncher(Launcher):
    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        start_fork_server(url, pool, settings, worker_ids)

    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        start_fork_server(url, pool, settings)

    def attend(self, url: str, pool: str, settings: PoolSettings) -> None:
        """Make sure that a process of this machine attends to the pool until its work is certain
        to be taken: a fork server that runs already, or a new one."""
        if not wake_pipe.wake(url, pool):
            start_fork_server(url, pool, settings)


class MachineLauncher(ProcessLauncher):
    """Starts workers that run a machine (see machines/runtime) instead of their pool's
    processor."""

    def __init__(self, machine: str) -> None:
        self._machine = machine

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        start_fork_server(url, pool, settings, worker_ids, machine=self._machine)


def start_fork_server(
    url: str,
    pool: str,
    settings: PoolSettings,
    worker_ids: Sequence[str] = (),
    *,
    machine: str | None = None,
) -> None:
    """Start a fork server in a session of its own and do not wait for it. Without ids it begins
    with a scaling pass. The URL may hold a password, so it goes through the environment."""
    if not url or url.startswith("memory:"):
        raise InvalidInput("workers cannot be launched for a memory store: use sqlite:///fleet.db")
    # `-m` instead takes 5 ms more
    begin = "import sys; from sprat.launchers.process.fork_server import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", begin, pool, *worker_ids]
    pipe = wake_pipe.open_reading(url, pool)  # open from here on: no push finds it closed
    try:
        run_apart(command, environment(url, settings, machine), pipe)
    finally:
        if pipe >= 0:
            os.close(pipe)


def environment(url: str, settings: PoolSettings, machine: str | None = None) -> dict[str, str]:
    """The environment of a process that works for this pool."""
    names = ENVIRONMENT.union(settings.environment)
    variables = {k: v for k, v in os.environ.items() if k in names or k.startswith("SPRAT_")}
    if url.startswith("postgres"):  # PGPASSFILE and others hold what a connection needs
        variables |= {k: v for k, v in os.environ.items() if k.startswith("PG")}
    # A fork server changes to the pool's directory, and may start another one from there.
    if variables.get("PYTHONPATH"):
        places = variables["PYTHONPATH"].split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join(os.path.abspath(place) for place in places)
    for name in ("SPRAT_LOG", "SPRAT_DIRECTORY"):
        if variables.get(name):
            variables[name] = os.path.abspath(variables[name])
    variables.pop(MACHINE, None)  # it is for one fork server, not for those that it starts
    return {**variables, "SPRAT_URL": url, **({} if machine is None else {MACHINE: machine})}


PIPE = 9  # the descriptor of the wake-up pipe in a fork server: a shell can pass on one digit
INPUT = 8  # the one of the standard input of a program


def run_apart(
    command: list[str], environment: dict[str, str], pipe: int = -1, *, text: str = ""
) -> None:
    """Start a program in a session of its own, and do not wait for it; it inherits `pipe`, and
    reads `text` from its standard input."""
    # The shell forks and leaves at once: its starter is not left with a zombie. What a shell
    # starts like this reads from /dev/null, whatever its own standard input is.
    script = f'"$@" <&{INPUT} {INPUT}<&- &' if text else '"$@" &'
    command = ["/bin/sh", "-c", script, "sh", *command]
    log = _log()
    passed = []
    content = -1
    if pipe >= 0:
        environment = {**environment, wake_pipe.DESCRIPTOR: str(PIPE)}
        passed = [(os.POSIX_SPAWN_DUP2, pipe, PIPE)]
    try:
        if text:
            content = _unnamed_file(text)
            passed.append((os.POSIX_SPAWN_DUP2, content, INPUT))
        pid = runtime.spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, log, 1),
                (os.POSIX_SPAWN_DUP2, log, 2),
                *passed,  # after the log, which may be 9
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),  # last: the log may be 0
            ],
            setsid=True,
            # A fork server needs every signal, whatever its starter ignores or blocks.
            setsigmask=(),
            setsigdef=(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT),
        )
    except OSError as error:
        raise SpratError(f"no process can be started: {error}") from error
    finally:
        os.close(log)
        if content >= 0:
            os.close(content)
    try:
        os.waitpid(pid, 0)
    except ChildProcessError:
        pass  # the caller ignores SIGCHLD, or waits for all children elsewhere


def _unnamed_file(text: str) -> int:
    """A descriptor to read the text from; above those that a program is started with."""
    import fcntl
    import tempfile

    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, PIPE + 1)


def _log() -> int:
    """Where a process without a terminal writes its errors."""
    path = os.environ.get("SPRAT_LOG") or os.devnull
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SpratError(f"SPRAT_LOG: {path} cannot be written: {error.strerror}") from error
