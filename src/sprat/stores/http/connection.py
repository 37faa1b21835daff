"""Requests to an orchestrator over connections that are kept, by threads and after forks alike.

HTTP/1.1 as far as it is needed, on sockets: http.client costs a worker that starts from nothing
three times what Python's own start does. docs/decisions/0014-server.md has the figures.
"""

from __future__ import annotations

import _socket
import os
import time

from sprat import errors, jsontext
from sprat.stores.http.address import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

PAUSES = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)  # before each try
MAX_PAUSE_SECONDS = 5.0  # that a server may ask for
IDLE_SECONDS = 50.0  # a connection unused for longer may just be closing at the other end
MAX_IDLE = 8  # connections kept
MAX_HEADER_BYTES = 64 * 1024

KINDS: dict[str, type[errors.SpratError]] = {
    "key_conflict": errors.KeyConflict,
    "unknown_item": errors.UnknownItem,
    "unknown_worker": errors.UnknownWorker,
    "store_mismatch": errors.StoreMismatch,
    "store_unavailable": errors.StoreUnavailable,
}


class NotSent(Exception):
    """No connection: the server has not seen the request."""


class Lost(Exception):
    """The connection broke after the request was sent: it may have been carried out."""


class Connections:
    """Sends requests, each over a connection of its own while it lasts."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self._idle: list[tuple[float, Any]] = []
        self._pid = os.getpid()
        self._tls: Any = None
        auth = "" if address.key is None else f"authorization: Bearer {address.key}\r\n"
        host = f"[{address.host}]" if ":" in address.host else address.host
        self._front = f"host: {host}:{address.port}\r\n{auth}content-type: application/json\r\n"

    def call(
        self,
        path: str,
        body: str,
        secret: str | None,
        *,
        extra_seconds: float = 0.0,
        on_lost: Callable[[], None] = lambda: None,
    ) -> Any:
        """The answer to a POST. What cannot be sent, or whose answer is lost, is sent again;
        `on_lost` is called before that in the second case."""
        request = self._request(path, body, secret)
        why = ""
        for pause in PAUSES:
            if pause:
                time.sleep(pause)
            try:
                status, headers, answer = self._exchange(request, extra_seconds)
            except NotSent as error:
                why = str(error)
            except Lost as error:
                why = str(error)
                on_lost()
            else:
                if not _is_for_later(status, answer):
                    return _read(status, answer)
                why = "it asks to come back later"
                time.sleep(min(_seconds(headers.get("retry-after")), MAX_PAUSE_SECONDS))
        raise errors.StoreUnavailable(f"no answer from {self.address.shown}: {why}")

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.close()

    # -- one request ------------------------------------------------------------------------

    def _request(self, path: str, body: str, secret: str | None) -> bytes:
        content = body.encode("utf-8", "surrogatepass")
        proof = "" if secret is None else f"sprat-worker-secret: {secret}\r\n"
        head = (
            f"POST {self.address.prefix}{path} HTTP/1.1\r\n{self._front}{proof}"
            f"content-length: {len(content)}\r\n\r\n"
        )
        return head.encode("latin-1") + content

    def _exchange(self, request: bytes, extra_seconds: float) -> tuple[int, dict[str, str], bytes]:
        connection = self._kept() or self._opened()
        try:
            connection.settimeout(self.address.timeout_seconds + extra_seconds)
            connection.sendall(request)
            status, headers, body = Reader(connection).answer()
        except OSError as error:  # timeouts and TLS errors are OSErrors too
            connection.close()
            raise Lost(str(error) or type(error).__name__) from None
        except BaseException:
            connection.close()
            raise
        if headers.get("connection", "").lower() == "close" or len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append((time.monotonic(), connection))
        return status, headers, body

    def _kept(self) -> Any:
        """A connection that was used before and is still good."""
        if self._pid != os.getpid():  # forked: those are our parent's, and stay open there
            self.close()
            self._pid = os.getpid()
        while self._idle:
            try:
                since, connection = self._idle.pop()
            except IndexError:
                return None  # another thread took the last one
            if time.monotonic() - since < IDLE_SECONDS and _is_quiet(connection):
                return connection
            connection.close()
        return None

    def _opened(self) -> Any:
        address = self.address
        try:
            if address.is_tls:
                return self._opened_with_tls()
            return _connected(address)
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from None

    def _opened_with_tls(self) -> Any:
        import socket
        import ssl

        address = self.address
        if self._tls is None:
            try:
                self._tls = ssl.create_default_context(cafile=address.ca_file)
                if address.client_certificate:
                    self._tls.load_cert_chain(address.client_certificate, address.client_key)
            except OSError as error:
                raise errors.InvalidInput(
                    f"SPRAT_CA_FILE or SPRAT_CLIENT_CERTIFICATE cannot be used: {error}"
                ) from None
        plain = socket.create_connection((address.host, address.port), address.timeout_seconds)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            return self._tls.wrap_socket(plain, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise errors.InvalidInput(
                f"{address.shown} cannot prove who it is ({error.verify_message}): "
                f"SPRAT_CA_FILE names the authority to trust"
            ) from None
        except BaseException:
            plain.close()
            raise


def _connected(address: Address) -> Any:
    """A plain connection, by the first of the host's addresses that answers."""
    why: OSError | None = None
    for family, kind, number, _, place in _socket.getaddrinfo(
        address.host, address.port, 0, _socket.SOCK_STREAM
    ):
        connection = _socket.socket(family, kind, number)
        try:
            connection.settimeout(address.timeout_seconds)
            connection.connect(place)
            connection.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            why = error
            connection.close()
    raise why or OSError(f"{address.host} has no address")


def _is_quiet(connection: Any) -> bool:
    """Whether nothing came while nothing was asked: an end, or what we cannot understand."""
    try:
        connection.settimeout(0.0)
        _socket.socket.recv(connection, 1, _socket.MSG_PEEK)  # beneath TLS too
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


class Reader:
    """Reads one answer from a connection."""

    def __init__(self, connection: Any) -> None:
        self._recv = connection.recv
        self._rest = b""

    def answer(self) -> tuple[int, dict[str, str], bytes]:
        while True:
            status, headers = self._head()
            if status >= 200:
                break
        if status == 204:
            return status, headers, b""
        if headers.get("transfer-encoding", "").lower() == "chunked":
            return status, headers, self._chunks()
        length = headers.get("content-length")
        if length is None or not length.isdecimal():
            raise OSError("an answer without a length")
        return status, headers, self._exactly(int(length))

    def _head(self) -> tuple[int, dict[str, str]]:
        lines = self._until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        words = lines[0].split(" ", 2)
        if len(words) < 2 or not words[0].startswith("HTTP/1.") or not words[1].isdecimal():
            raise OSError("this is no HTTP")
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        return int(words[1]), headers

    def _chunks(self) -> bytes:
        parts: list[bytes] = []
        while True:
            size = int(self._until(b"\r\n").partition(b";")[0], 16)
            if not size:
                while self._until(b"\r\n"):
                    pass
                return b"".join(parts)
            parts.append(self._exactly(size))
            self._exactly(2)

    def _until(self, end: bytes) -> bytes:
        while (place := self._rest.find(end)) < 0:
            if len(self._rest) > MAX_HEADER_BYTES:
                raise OSError("this is no HTTP")
            self._rest += self._more()
        found, self._rest = self._rest[:place], self._rest[place + len(end) :]
        return found

    def _exactly(self, size: int) -> bytes:
        parts = [self._rest]
        have = len(self._rest)
        while have < size:
            parts.append(self._more())
            have += len(parts[-1])
        whole = b"".join(parts)
        self._rest = whole[size:]
        return whole[:size]

    def _more(self) -> bytes:
        part: bytes = self._recv(65536)
        if not part:
            raise OSError("the connection was closed")
        return part


# -- answers ------------------------------------------------------------------------------------


def _is_for_later(status: int, body: bytes) -> bool:
    """Whether nothing was done, and the same request will be welcome in a moment."""
    if status in (429, 502, 504):
        return True
    return status == 503 and b'"store_' not in body


def _seconds(text: str | None) -> float:
    return float(text) if text and text.isascii() and text.isdecimal() else 0.5


def _read(status: int, body: bytes) -> Any:
    """The answer's content, or the error that it stands for."""
    try:
        content = jsontext.loads(body.decode())
    except ValueError:
        content = {}
    if status < 300 and "answer" in content:
        return content
    if "message" not in content:
        raise errors.StoreMismatch(f"this is no orchestrator: it answers with status {status}")
    kind = KINDS.get(content.get("error", ""), errors.InvalidInput)
    if status in (401, 403):
        raise errors.InvalidInput(f"{content['message']} (SPRAT_API_KEY)")
    if status >= 500 and kind is errors.InvalidInput:
        kind = errors.StoreUnavailable
    raise kind(content["message"])
