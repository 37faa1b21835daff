"""Where a worker can be asked how it is: `GET /health`, from one thread beside the work.

The thread reads up to MAX_AT_ONCE requests at the same time, each for at most a second and no more
than its head; a further connection ends the oldest. Jobs fork beside this thread, so it takes no
locks and writes no log.
"""

from __future__ import annotations

import os
import socket
import threading

from sprat.core import jsontext
from sprat.core.errors import InvalidInput
from sprat.core.runtime import runtime

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

ONE_REQUEST_SECONDS = 1.0
MAX_HEAD_BYTES = 4096
MAX_AT_ONCE = 64
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
        requests: dict[int, _Request] = {}  # by file descriptor, oldest first
        try:
            self._answer(requests)
        finally:
            for request in requests.values():
                request.connection.close()

    def _answer(self, requests: dict[int, _Request]) -> None:
        import select

        self._listening.setblocking(False)
        listening = self._listening.fileno()
        while True:
            poll = select.poll()
            for descriptor in (listening, *requests):
                poll.register(descriptor, select.POLLIN)
            for descriptor, _ in poll.poll(_milliseconds_left(requests)):
                if descriptor in requests:
                    self._read(requests, descriptor)
                    continue
                try:
                    request = _Request(self._listening.accept()[0])
                except (ConnectionError, BlockingIOError):
                    continue  # gone before we came to it
                except OSError:
                    return  # closed
                requests[request.connection.fileno()] = request
            _end_slow(requests)

    def _read(self, requests: dict[int, _Request], descriptor: int) -> None:
        """Read what came, and answer if the request is complete."""
        request = requests[descriptor]
        try:
            line = request.read()
            if line is None:
                return
            request.connection.sendall(_response(line, self._operation()))
        except OSError:
            pass  # the client is gone
        requests.pop(descriptor).connection.close()


class _Request:
    """A request that is being read."""

    __slots__ = ("connection", "end", "head")

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.end = runtime.monotonic() + ONE_REQUEST_SECONDS
        self.head = b""
        connection.setblocking(False)

    def read(self) -> bytes | None:
        """The first line when the head is complete, nothing when it never will be, None before."""
        part = self.connection.recv(MAX_HEAD_BYTES)
        self.head += part
        if b"\r\n\r\n" in self.head:
            return self.head.partition(b"\r\n")[0]
        return b"" if not part or len(self.head) > MAX_HEAD_BYTES else None


def _milliseconds_left(requests: dict[int, _Request]) -> float | None:
    """Until the oldest request is too old."""
    for request in requests.values():
        return max(0.0, request.end - runtime.monotonic()) * 1000 + 1
    return None


def _end_slow(requests: dict[int, _Request]) -> None:
    now = runtime.monotonic()
    for descriptor, request in list(requests.items()):
        if len(requests) <= MAX_AT_ONCE and request.end > now:
            return
        requests.pop(descriptor).connection.close()


def _url(host: str, port: int) -> str:
    """How others reach it: by this machine's name, where it listens on all addresses."""
    host = os.uname().nodename if host in EVERYWHERE else host
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


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
