"""Private Redis servers for tests: on a free port of this machine, with their own directory."""

from __future__ import annotations

import atexit
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from sprat.store.redis.address import parse
from sprat.store.redis.resp import ReplyError, RespConnection

START_SECONDS = 30.0


class RedisServer:
    """A redis-server with an append-only file. It can be killed and started again."""

    def __init__(self, *settings: str, place: Path | None = None, tls: bool = False) -> None:
        self.place = place or Path(tempfile.mkdtemp(prefix="sprat-redis-"))
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}/0"
        self._settings = settings
        self._tls = tls
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = os.getpid()
        self.start()

    def start(self) -> None:
        port = ("--tls-port" if self._tls else "--port", str(self.port))
        self._process = subprocess.Popen(
            [
                *(program(), *port, "--bind", "127.0.0.1", "--dir", str(self.place)),
                *("--appendonly", "yes", "--appendfsync", "everysec", "--save", ""),
                *(("--port", "0") if self._tls else ()),
                *("--logfile", str(self.place / "log"), *self._settings),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
        )
        self.await_start()

    def await_start(self) -> None:
        end = time.monotonic() + START_SECONDS
        while not self.is_up():
            assert self._process is not None
            assert self._process.poll() is None, f"{program()} did not start: see {self.place}/log"
            assert time.monotonic() < end, "the server does not answer"
            time.sleep(0.01)

    def is_up(self) -> bool:
        try:
            if self._tls:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return True
            return self.ask("PING") == "PONG"
        except ReplyError as error:
            return "NOAUTH" in str(error)
        except OSError:
            return False

    def ask(self, *command: str | int | bytes) -> Any:
        address = parse(self.url)
        wire = RespConnection(address, address.hosts[0])
        try:
            return wire.ask(*command)
        finally:
            wire.close()

    def forget(self, pattern: str) -> None:
        cursor = "0"
        while True:
            cursor, keys = self.ask("SCAN", cursor, "MATCH", pattern, "COUNT", 1000)
            if keys:
                self.ask("UNLINK", *keys)
            if cursor == "0":
                return

    def kill(self) -> None:
        """kill -9, as a crash would."""
        self.end(signal.SIGKILL)
        self._mend()

    def _mend(self) -> None:
        """Cut half a transaction off the end of the append-only file. Redis 7.0 cuts off only half
        a command, and carries out the rest of the transaction at its next start."""
        for manifest in self.place.glob("appendonlydir/*.manifest"):
            checker = program().replace("-server", "-check-aof")
            command = [checker, "--fix", str(manifest)]
            subprocess.run(command, input=b"y\n", stdout=subprocess.DEVNULL, check=False)

    def end(self, how: int = signal.SIGTERM) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(how)
            process.wait()

    def stop(self) -> None:
        if os.getpid() == self._owner:  # not in a fork of ours
            self.end(signal.SIGKILL)
            shutil.rmtree(self.place, ignore_errors=True)

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


def program() -> str:
    """The server's program, or another that is to be tested: a valkey-server, say. Where servers
    are required, its absence is an error."""
    wanted = os.environ.get("SPRAT_TEST_REDIS_SERVER", "redis-server")
    found = shutil.which(wanted)
    if found is None:
        why = f"{wanted} is not installed: tools/packages redis-server"
        if os.environ.get("SPRAT_TEST_REQUIRE_SERVERS") or os.environ.get("CI"):
            pytest.fail(why)
        pytest.skip(why)
    return found


@cache
def shared_server() -> RedisServer:
    """One server for all tests of this process."""
    server = RedisServer()
    atexit.register(server.stop)
    return server


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])
