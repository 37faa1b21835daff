"""Where a worker can be asked how it is: `GET /health`, from one thread beside the work.

One request at a time, a second for each, and no more of it than a request's head: whoever asks
slowly or for long keeps others waiting for that second, never the work. Jobs fork beside this
thread, so it takes no locks and writes no log.
"""

from __future__ import annotations

import os
import socket
import threading
import time

from sprat import jsontext
from sprat.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ONE_REQUEST_SECONDS = 1.0
MAX_HEAD_BYTES = 4096
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")


def answer(operation: str | None) -> dict[str, str | None]:
    """What a worker says about itself; `operation` is the id of what it is working on."""
    return {
        "status": "healthy",
        "worker_status": "idle" if operation is None else "busy",
        "current_operation": operation,
    }


def read_address(text: str) -> tuple[str, int]:
    """HOST:PORT, or a PORT on loopback; [HOST]:PORT for IPv6."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if colon else LOOPBACK
    if not host or not (port.isascii() and port.isdecimal() and int(port[:6]) < 65536):
        raise InvalidInput(f"{text!r} is no address: write HOST:PORT, such as {LOOPBACK}:5003")
    return host, int(port)


class HealthServer:
    """Listens from the start, and answers from `start` to `close`."""

    def __init__(self, address: str, operation: Callable[[], str | None]) -> None:
        host, port = read_address(address)
        self._operation = operation
        try:
            family = socket.AF_INET6 if ":" in host else socket.AF_INET
            self._listening = socket.create_server((host, port), family=family, backlog=16)
        except OSError as error:
            why = str(error.strerror or error).partition(" (")[0]
            raise InvalidInput(
                f"cannot serve on {address} ({why}): choose another port, or 0 for any"
            ) from None
        self.url = _url(host, self._listening.getsockname()[1])

    def start(self) -> HealthServer:
        threading.Thread(target=self._run, name="health", daemon=True).start()
        return self

    def close(self) -> None:
        """Listen no more, and wake the thread that does."""
        try:
            self._listening.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # not every system lets a listening socket be shut down
        self._listening.close()

    def _run(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except ConnectionError:
                continue  # gone before we came to it
            except OSError:
                return  # closed
            with connection:
                try:
                    connection.sendall(_response(_line(connection), self._operation()))
                except OSError:
                    pass  # slow, or gone: nobody is there to tell


def _url(host: str, port: int) -> str:
    """How others reach it: by this machine's name, where it listens on all addresses."""
    host = os.uname().nodename if host in EVERYWHERE else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _line(connection: socket.socket) -> bytes:
    """The first line of a request whose head came whole and in time."""
    end = time.monotonic() + ONE_REQUEST_SECONDS
    got = b""
    while b"\r\n\r\n" not in got:
        connection.settimeout(max(0.001, end - time.monotonic()))
        part = connection.recv(MAX_HEAD_BYTES)
        got += part
        if not part or len(got) > MAX_HEAD_BYTES:
            return b""
    return got.partition(b"\r\n")[0]


def _response(line: bytes, operation: str | None) -> bytes:
    method, _, rest = line.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        return _reply("400 Bad Request", b"")
    if path != b"/health":
        return _reply("404 Not Found", b"")
    content = jsontext.dumps(answer(operation)).encode()
    return _reply("200 OK", content if method == b"GET" else b"")


def _reply(status: str, content: bytes) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(content)}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + content
