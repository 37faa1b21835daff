"""Private servers on loopback, as durable as they are meant to be used."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

PATIENCE = 30.0


class Server:
    """One that was started here, and is stopped by `stop`. `fresh` empties it."""

    url: str
    settings: str
    version: str

    def __init__(self) -> None:
        self.place = tempfile.mkdtemp(prefix="sprat-bench-")
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.process = self.start()
        self.await_start()

    def start(self) -> subprocess.Popen[bytes]:
        raise NotImplementedError

    def fresh(self) -> None:
        raise NotImplementedError

    def await_start(self) -> None:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return
            except OSError:
                if time.monotonic() > end or self.process.poll() is not None:
                    raise SystemExit(f"the server in {self.place} does not start") from None
                time.sleep(0.02)

    def stop(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)
        shutil.rmtree(self.place, ignore_errors=True)


class Redis(Server):
    settings = "append-only file, synced every second"

    def start(self) -> subprocess.Popen[bytes]:
        self.url = f"redis://127.0.0.1:{self.port}/0"
        told = subprocess.run(["redis-server", "--version"], capture_output=True, check=True)
        self.version = "Redis " + told.stdout.decode().split("v=")[1].split()[0]
        return subprocess.Popen(
            [
                *("redis-server", "--port", str(self.port), "--bind", "127.0.0.1"),
                *("--dir", self.place, "--appendonly", "yes", "--appendfsync", "everysec"),
                *("--save", "", "--auto-aof-rewrite-percentage", "0"),
            ],
            stdout=subprocess.DEVNULL,
        )

    def fresh(self) -> None:
        with socket.create_connection(("127.0.0.1", self.port)) as line:
            line.sendall(b"FLUSHALL\r\n")
            line.recv(64)


class Postgres(Server):
    settings = "fsync on, synchronous_commit on"

    def start(self) -> subprocess.Popen[bytes]:
        programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        if not programs:
            raise SystemExit("no PostgreSQL here: tools/packages postgresql")
        self._programs, self._database = programs[-1], 0
        data = f"{self.place}/data"
        os.chmod(self.place, 0o777)  # PostgreSQL refuses to run as root
        initdb = [*self._user(), str(self._programs / "initdb"), "-D", data, "-A", "trust"]
        subprocess.run([*initdb, "-U", "bench"], check=True, stdout=subprocess.DEVNULL)
        told = subprocess.run([self._programs / "postgres", "-V"], capture_output=True, check=True)
        self.version = "PostgreSQL " + told.stdout.decode().split()[2]
        return subprocess.Popen(
            [
                *(*self._user(), str(self._programs / "postgres"), "-D", data),
                *("-p", str(self.port), "-c", "listen_addresses=127.0.0.1"),
                *("-c", f"unix_socket_directories={self.place}", "-c", "shared_buffers=256MB"),
            ],
            stderr=subprocess.DEVNULL,
        )

    def await_start(self) -> None:
        super().await_start()
        ready = [str(self._programs / "pg_isready"), "-h", "127.0.0.1", "-p", str(self.port)]
        end = time.monotonic() + PATIENCE
        while subprocess.run(ready, stdout=subprocess.DEVNULL, check=False).returncode:
            if time.monotonic() > end:
                raise SystemExit("PostgreSQL does not get ready")
            time.sleep(0.05)

    def fresh(self) -> None:
        """A database of its own for each measurement; the one before goes."""
        before, self._database = self._database, self._database + 1
        self._admin(f'CREATE DATABASE "bench{self._database}"')
        if before:
            self._admin(f'DROP DATABASE "bench{before}" WITH (FORCE)')
        self._admin("CHECKPOINT")
        self.url = f"postgresql://bench@127.0.0.1:{self.port}/bench{self._database}"

    def _admin(self, statement: str) -> None:
        where = ["-h", "127.0.0.1", "-p", str(self.port), "-U", "bench", "postgres"]
        subprocess.run(["psql", "-q", *where, "-c", statement], check=True)

    def _user(self) -> list[str]:
        if os.getuid():
            return []
        return ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]


class Sqlite(Server):
    """No server: a file for each measurement."""

    settings = "WAL; every push synced, workers safe against a crash of a process"
    version = "SQLite"

    def __init__(self) -> None:
        self.place = tempfile.mkdtemp(prefix="sprat-bench-")
        self._file = 0

    def fresh(self) -> None:
        self._file += 1
        self.url = f"sqlite:///{self.place}/bench{self._file}.db"

    def stop(self) -> None:
        shutil.rmtree(self.place, ignore_errors=True)
