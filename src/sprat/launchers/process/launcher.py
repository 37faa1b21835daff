"""Workers as local processes, forked from a *nest* (see fork_server.py): starting one."""

from __future__ import annotations

import os
import signal
import sys

from sprat.core.errors import InvalidInput, SpratError
from sprat.fleet.launcher import Launcher
from sprat.launchers.process import doorbell

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

ORDER = "SPRAT_LAUNCH"  # the variable with a machine that the workers run (see machines/runtime)


class ProcessLauncher(Launcher):
    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        start_nest(url, pool, settings, worker_ids)

    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        start_nest(url, pool, settings)

    def attend(self, url: str, pool: str, settings: PoolSettings) -> None:
        """See to it that a process of this machine looks after the pool until its work is sure to
        be taken: the nest that is there, or one that is started now."""
        if not doorbell.ring(url, pool):
            start_nest(url, pool, settings)


class OrderedLauncher(ProcessLauncher):
    """Starts workers that run a machine (see machines/runtime) instead of their pool's
    processor."""

    def __init__(self, order: str) -> None:
        self._order = order

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        start_nest(url, pool, settings, worker_ids, order=self._order)


def start_nest(
    url: str,
    pool: str,
    settings: PoolSettings,
    worker_ids: Sequence[str] = (),
    *,
    order: str | None = None,
) -> None:
    """Start a nest in a session of its own and do not wait for it. Without ids it begins with a
    scaling pass. The URL may hold a password, so it goes through the environment."""
    if not url or url.startswith("memory:"):
        raise InvalidInput("workers cannot be launched for a memory store: use sqlite:///fleet.db")
    # `-m` instead takes 5 ms more
    begin = "import sys; from sprat.launchers.process.fork_server import main; sys.exit(main())"
    command = [sys.executable, "-P", "-c", begin, pool, *worker_ids]
    bell = doorbell.open_reading(url, pool)  # held from here on: there is no moment without
    try:
        run_apart(command, environment(url, settings, order), bell)
    finally:
        if bell >= 0:
            os.close(bell)


def environment(url: str, settings: PoolSettings, order: str | None = None) -> dict[str, str]:
    """What a process that works for this pool gets of ours."""
    wanted = ENVIRONMENT.union(settings.environment)
    kept = {k: v for k, v in os.environ.items() if k in wanted or k.startswith("SPRAT_")}
    if url.startswith("postgres"):  # PGPASSFILE and the like say how to get in
        kept |= {k: v for k, v in os.environ.items() if k.startswith("PG")}
    # A nest goes to the pool's directory, and may start another one from there.
    if kept.get("PYTHONPATH"):
        places = kept["PYTHONPATH"].split(os.pathsep)
        kept["PYTHONPATH"] = os.pathsep.join(os.path.abspath(place) for place in places)
    for name in ("SPRAT_LOG", "SPRAT_DIRECTORY"):
        if kept.get(name):
            kept[name] = os.path.abspath(kept[name])
    kept.pop(ORDER, None)  # it is for one nest, not for those that it starts
    return {**kept, "SPRAT_URL": url, **({} if order is None else {ORDER: order})}


BELL = 9  # the descriptor by which a nest gets its doorbell: a shell can pass on one digit
INPUT = 8  # and a program its standard input


def run_apart(
    command: list[str], environment: dict[str, str], bell: int = -1, *, text: str = ""
) -> None:
    """Start a program in a session of its own, and do not wait for it; it inherits `bell`, and
    reads `text` from its standard input."""
    # The shell forks and leaves at once: its starter is not left with a zombie. What a shell
    # starts like this reads from /dev/null, whatever its own standard input is.
    script = f'"$@" <&{INPUT} {INPUT}<&- &' if text else '"$@" &'
    command = ["/bin/sh", "-c", script, "sh", *command]
    log = _log()
    passed = []
    content = -1
    if bell >= 0:
        environment = {**environment, doorbell.HANDED_OVER: str(BELL)}
        passed = [(os.POSIX_SPAWN_DUP2, bell, BELL)]
    try:
        if text:
            content = _unnamed_file(text)
            passed.append((os.POSIX_SPAWN_DUP2, content, INPUT))
        pid = os.posix_spawn(
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
            # Whatever the caller ignores or holds back, a nest needs them all.
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
        return fcntl.fcntl(file.fileno(), fcntl.F_DUPFD_CLOEXEC, BELL + 1)


def _log() -> int:
    """Where a process that nobody watches says what is wrong."""
    path = os.environ.get("SPRAT_LOG") or os.devnull
    try:
        return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise SpratError(f"SPRAT_LOG: {path} cannot be written: {error.strerror}") from error
