"""Requests to an orchestrator over connections that are kept, by threads and after forks alike.

HTTP/1.1 as far as it is needed, on sockets: http.client costs a worker that starts from nothing
three times what Python's own start does. docs/decisions/0014-server.md has the figures.
"""

from __future__ import annotations

import _socket
import os

from sprat.core import errors
from sprat.core.runtime import runtime
from sprat.store.backend import PROTOCOL
from sprat.store.http import answer
from sprat.store.http.address import ServerAddress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from sprat.store.http.proxy import Proxy

PAUSES = (0.0, 0.05, 0.2, 0.5, 1.0, 2.0)  # before each try
MAX_PAUSE_SECONDS = 5.0  # that a server may ask for
IDLE_SECONDS = 50.0  # a connection unused for longer may just be closing at the other end
MAX_IDLE = 8  # connections kept


class NotSent(Exception):
    """No connection: the server has not seen the request."""


class Lost(Exception):
    """The connection broke after the request was sent: it may have been carried out."""


class Connections:
    """Sends requests, each over a connection of its own while it lasts."""

    def __init__(self, address: ServerAddress) -> None:
        self.address = address
        self._idle: list[tuple[float, Any]] = []
        self._pid = os.getpid()
        self._tls: Any = None
        auth = "" if address.key is None else f"authorization: Bearer {address.key}\r\n"
        self._front = (
            f"host: {address.authority}\r\n{auth}content-type: application/json\r\n"
            f"sprat-protocol: {PROTOCOL}\r\n"
        )
        self._start = address.prefix  # of what is asked for
        self._where = address.shown
        if address.proxy is not None:
            self._where += f" (through the proxy {address.proxy.host}:{address.proxy.port})"
            if not address.is_tls:
                self._start = address.shown
                self._front += address.proxy.login

    def call(
        self,
        path: str,
        body: str,
        secret: str | None,
        *,
        extra_seconds: float = 0.0,
        on_lost: Callable[[], None] = lambda: None,
    ) -> Any:
        """The answer of a verb, which may be repeated: what cannot be sent, or whose answer is
        lost, is sent again; `on_lost` is called before that in the second case."""
        request = self._request("POST", path, body, secret)
        status, headers, content = self._send(request, PAUSES, extra_seconds, on_lost)
        _check_protocol(self.address.shown, status, headers, content)
        reply = self._success(status, headers, content)
        if "answer" not in reply:
            raise answer.not_ours(self._where, status, headers)
        return reply

    def once(self, method: str, path: str, body: str, secret: str | None) -> Any:
        """The answer of any route, which may be none that can be repeated: one try."""
        request = self._request(method, path, body, secret)
        status, headers, content = self._send(request, PAUSES[:1])
        return self._success(status, headers, content)

    def _send(
        self,
        request: bytes,
        pauses: Sequence[float],
        extra_seconds: float = 0.0,
        on_lost: Callable[[], None] = lambda: None,
    ) -> tuple[int, dict[str, str], bytes]:
        why: errors.SpratError | str = ""
        asked = 0.0  # by the server
        for pause in pauses:
            if pause or asked:
                runtime.sleep(max(pause, asked))
            asked = 0.0
            try:
                status, headers, content = self._exchange(request, extra_seconds)
            except NotSent as error:
                why = str(error)
            except Lost as error:
                why = str(error)
                on_lost()
            else:
                if not answer.is_for_later(status, content):
                    return status, headers, content
                asked = min(answer.retry_after(headers), MAX_PAUSE_SECONDS)
                why = answer.error(self._where, status, headers, content)
        raise errors.StoreUnavailable(f"no answer from {self._where}: {why}")

    def _success(self, status: int, headers: dict[str, str], content: bytes) -> Any:
        if status >= 300:
            raise answer.error(self._where, status, headers, content)
        reply = answer.loaded(content) if content else {}
        if not isinstance(reply, dict | list):
            raise answer.not_ours(self._where, status, headers)
        return reply

    def close(self) -> None:
        idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def __del__(self) -> None:
        self.close()

    # -- one request ------------------------------------------------------------------------

    def _request(self, method: str, path: str, body: str, secret: str | None) -> bytes:
        content = body.encode("utf-8", "surrogatepass")
        proof = "" if secret is None else f"sprat-worker-secret: {secret}\r\n"
        head = (
            f"{method} {self._start}{path} HTTP/1.1\r\n{self._front}{proof}"
            f"content-length: {len(content)}\r\n\r\n"
        )
        return head.encode("latin-1") + content

    def _exchange(self, request: bytes, extra_seconds: float) -> tuple[int, dict[str, str], bytes]:
        connection = self._kept() or self._opened()
        try:
            connection.settimeout(self.address.timeout_seconds + extra_seconds)
            connection.sendall(request)
            status, headers, body = answer.Reader(connection).answer()
        except OSError as error:  # timeouts and TLS errors are OSErrors too
            connection.close()
            raise Lost(str(error) or type(error).__name__) from None
        except BaseException:
            connection.close()
            raise
        if headers.get("connection", "").lower() == "close" or len(self._idle) >= MAX_IDLE:
            connection.close()
        else:
            self._idle.append((runtime.monotonic(), connection))
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
            if runtime.monotonic() - since < IDLE_SECONDS and _is_quiet(connection):
                return connection
            connection.close()
        return None

    def _opened(self) -> Any:
        address = self.address
        try:
            if address.is_tls:
                return self._opened_with_tls()
            return _connected(address.proxy or address, address.timeout_seconds)
        except OSError as error:
            raise NotSent(str(error) or type(error).__name__) from None

    def _opened_with_tls(self) -> Any:
        import socket
        import ssl

        address, first = self.address, self.address.proxy or self.address
        tls = self._context()
        plain = socket.create_connection((first.host, first.port), address.timeout_seconds)
        try:
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if address.proxy is not None:
                self._tunnel(plain, address.proxy.login)
            return tls.wrap_socket(plain, server_hostname=address.host)
        except ssl.SSLCertVerificationError as error:
            plain.close()
            raise errors.InvalidInput(
                f"{address.shown} cannot prove who it is ({error.verify_message}): "
                f"SPRAT_CA_FILE names the authority to trust"
            ) from None
        except BaseException:
            plain.close()
            raise

    def _context(self) -> Any:
        """What TLS goes by: made once, since it reads all certificates of the system."""
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
        return self._tls

    def _tunnel(self, connection: Any, login: str) -> None:
        """Have the proxy pass on all that follows, which it cannot read."""
        there = self.address.authority
        asked = f"CONNECT {there} HTTP/1.1\r\nhost: {there}\r\n{login}\r\n"
        connection.sendall(asked.encode("latin-1"))
        status, headers = answer.Reader(connection).head()
        if status == 407:
            raise answer.not_ours(self._where, status, headers)
        if status >= 300:
            raise OSError(f"the proxy refuses with status {status}")


def _connected(place: ServerAddress | Proxy, timeout_seconds: float) -> Any:
    """A plain connection, by the first of the host's addresses that answers."""
    why: OSError | None = None
    for family, kind, number, _, found in _socket.getaddrinfo(
        place.host, place.port, 0, _socket.SOCK_STREAM
    ):
        connection = _socket.socket(family, kind, number)
        try:
            connection.settimeout(timeout_seconds)
            connection.connect(found)
            connection.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            why = error
            connection.close()
    raise why or OSError(f"{place.host} has no address")


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


def _check_protocol(shown: str, status: int, headers: dict[str, str], body: bytes) -> None:
    """An orchestrator of the previous version refuses what it does not know in words that point at
    the request; the cause is its version."""
    spoken = headers.get("sprat-protocol")
    if status in (404, 422) and spoken is None and b'"error"' in body:
        raise errors.StoreMismatch(
            f"the orchestrator at {shown} has an older version of sprat: upgrade it first"
        )
