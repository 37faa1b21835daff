"""A private PostgreSQL from the system's package, one for all the test processes of a run.

It listens on a free port of this machine, keeps its files in a temporary directory, syncs as a real
one does, and is stopped by the last process that leaves.
"""

from __future__ import annotations

import atexit
import fcntl
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import psycopg
import pytest

from sprat.store.open_store import open_store

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))
# Syncs go to memory where there is room for it: hundreds of tests need no disk.
_SHM = Path("/dev/shm")
_HAS_ROOM = _SHM.is_dir() and shutil.disk_usage(_SHM).free > 1 << 30
MEMORY = _SHM if _HAS_ROOM else Path(tempfile.gettempdir())
SETTINGS = {
    "fsync": "on",
    "shared_buffers": "64MB",
    "max_connections": "300",
    "unix_socket_directories": "",
    "listen_addresses": "127.0.0.1",
    "log_min_messages": "fatal",
    "max_prepared_transactions": "0",
}
AS_POSTGRES = ("setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups")
# Everybody comes in without a password, except `locked`.
HBA = "host all locked 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"


def is_missing() -> str | None:
    """Why there is no server to test with, if there is none."""
    return None if PROGRAMS else "PostgreSQL is not installed: tools/packages postgresql"


def require() -> None:
    """Skip the test where there is no server; where all must run, fail it."""
    reason = is_missing()
    if reason and os.environ.get("SPRAT_TEST_REQUIRE_SERVERS"):
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


class Server:
    """One server in a directory of its own. Also to be killed and started again."""

    def __init__(self, place: Path) -> None:
        self.place = place
        self.data = place / "data"
        self.port = free_port()
        place.mkdir(mode=0o700, exist_ok=True)
        if os.getuid() == 0:
            shutil.chown(place, "postgres", "postgres")
            place.chmod(0o711)
        self._run(
            "initdb", "-D", self.data, "-A", "trust", "-U", "sprat", "--no-sync", "-E", "UTF8"
        )
        (self.data / "pg_hba.conf").write_text(HBA)
        self.start()

    def url(self, database: str = "postgres", query: str = "") -> str:
        return f"postgresql://sprat@127.0.0.1:{self.port}/{database}{query}"

    def start(self) -> None:
        options = " ".join(f"-c {name}={value!r}" for name, value in SETTINGS.items())
        self._run(
            *("pg_ctl", "-D", self.data, "-l", self.place / "log", "-w", "-t", "60"),
            *("-o", f"-p {self.port} {options}", "start"),
        )

    @property
    def pid(self) -> int:
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def stop(self, mode: str = "fast") -> None:
        """`immediate` is a crash with a goodbye: no checkpoint, every session cut off."""
        self._run("pg_ctl", "-D", self.data, "-m", mode, "-w", "stop")

    def kill(self) -> None:
        """As the kernel does when memory runs out: SIGKILL to the server and all its children."""
        postmaster = self.pid
        children = _children(postmaster)
        os.kill(postmaster, signal.SIGKILL)
        for child in children:
            try:
                os.kill(child, signal.SIGKILL)
            except ProcessLookupError:
                pass
        while any(_is_there(pid) for pid in (postmaster, *children)):
            time.sleep(0.01)
        (self.data / "postmaster.pid").unlink()

    def remove(self) -> None:
        """Stop it, and leave nothing behind."""
        if (self.data / "postmaster.pid").exists():
            self.stop("immediate")
        shutil.rmtree(self.place)

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(PROGRAMS[-1] / program), *map(str, arguments)]
        if os.getuid() == 0:
            command = [
                "setpriv",
                "--reuid=postgres",
                "--regid=postgres",
                "--clear-groups",
                *command,
            ]
        done = subprocess.run(
            command,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            check=False,
            env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"},
        )
        assert done.returncode == 0, f"{program}: {done.stderr.decode()}"


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


_shared: list[str] = []


def shared_url() -> str:
    """The URL of a database of this process, on the server that all test processes share."""
    if not _shared:
        require()
        _shared.append(_database(_join()))
    return _shared[0]


def _join() -> str:
    """Start the server, or find it started. A shared lock is held as long as this process needs
    it; whoever can have that lock alone at its end is the last, and stops it."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    place = MEMORY / f"sprat-postgres-{run}"
    users = _lock(place, "users", fcntl.LOCK_SH)
    starting = _lock(place, "starting", fcntl.LOCK_EX)
    told = place / "url"
    if not told.exists():
        told.write_text(Server(place).url())
    os.close(starting)
    atexit.register(_leave, os.getpid(), place, users)
    return told.read_text()


def _lock(place: Path, what: str, kind: int) -> int:
    lock = os.open(f"{place}.{what}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    fcntl.flock(lock, kind)
    return lock


def _leave(owner: int, place: Path, users: int) -> None:
    if os.getpid() != owner:
        return
    if owner in _control:
        _control.pop(owner).close()
    try:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return
    os.kill(int((place / "data" / "postmaster.pid").read_text().split()[0]), signal.SIGQUIT)
    shutil.rmtree(place, ignore_errors=True)
    for what in ("users", "starting"):
        Path(f"{place}.{what}").unlink()


def _database(url: str) -> str:
    name = f"tests_{os.environ.get('PYTEST_XDIST_WORKER', 'main')}"
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
    return url.replace("/postgres", f"/{name}")


# -- what a test does to a store of ours ------------------------------------------------------

TABLES = (
    *("pool", "pool_count", "tenant_turn", "work_pool", "worker_registry", "scale_set"),
    *("decision", "pool_stats", "document", "bucket"),
)
SERVER = "orchestrator"  # the name of connections that are kept when a store is emptied
_control: dict[int, psycopg.Connection] = {}


def control(url: str) -> psycopg.Connection:
    """A connection that one test process keeps; its children make their own."""
    if os.getpid() not in _control:
        open_store(url).close()  # makes the tables
        db = _control[os.getpid()] = psycopg.connect(url, autocommit=True)
        if len(_control) == 1:  # not in a child
            db.execute(MOVABLE_CLOCK)
    return _control[os.getpid()]


def empty(url: str) -> None:
    """A store as new: only the orchestrator connected, nothing in it, its clock the server's."""
    control(url).execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        " AND application_name <> %s",
        (SERVER,),
    )
    control(url).execute("BEGIN;" + "".join(f"DELETE FROM sprat.{t};" for t in TABLES) + "COMMIT")
    control(url).execute("UPDATE sprat.meta SET value = 0 WHERE name = 'ahead' AND value <> '0'")
    control(url).execute("UPDATE sprat.mark SET at = sprat.clock()")


# The store's clock, with a number added that a test can move.
MOVABLE_CLOCK = """
INSERT INTO sprat.meta VALUES ('ahead', 0) ON CONFLICT DO NOTHING;
CREATE OR REPLACE FUNCTION sprat.clock() RETURNS float8 LANGUAGE sql VOLATILE AS $$
    SELECT extract(epoch FROM clock_timestamp())::float8
        + (SELECT value::float8 FROM sprat.meta WHERE name = 'ahead')
$$;
"""


def advance(url: str, seconds: float) -> None:
    """Time passes while the store is in use."""
    control(url).execute("UPDATE sprat.mark SET at = at + %s", (seconds,))
    outage(url, seconds)


def outage(url: str, seconds: float) -> None:
    """Time passes, and nothing reaches the store."""
    control(url).execute(
        "UPDATE sprat.meta SET value = value::float8 + %s WHERE name = 'ahead'", (seconds,)
    )
