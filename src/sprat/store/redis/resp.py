"""One connection: commands out, replies in. The parser is hiredis; this is all that is around it.

redis-py would do it too, at 150 ms of imports a worker: docs/decisions/0009-redis.md.
"""

from __future__ import annotations

import _socket
import os

from sprat.core.errors import InvalidInput, MissingExtra, StoreUnavailable

try:
    import hiredis
except ImportError:
    raise MissingExtra("hiredis is not installed: pip install 'sprat[redis]'") from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ssl import SSLContext
    from typing import Any

    from sprat.store.redis.address import RedisAddress

CONNECT_SECONDS = 5.0
REPLY_SECONDS = 30.0  # a server that sends nothing for this long is taken for dead
READ_BYTES = 1 << 16
_TLS_NOTHING = "SSLWantReadError"  # BlockingIOError of a TLS socket, whose module may be absent

_NAMING = ("CLIENT", "SETNAME")

ReplyError = hiredis.ReplyError
pack = hiredis.pack_command


class RespConnection:
    """Not thread-safe, and not for two processes."""

    def __init__(self, address: RedisAddress, host: tuple[str, int] | None) -> None:
        self._reader = hiredis.Reader(encoding="utf-8", errors="surrogateescape")
        self._socket = _connected(address, host)

    def greet(self, address: RedisAddress) -> None:
        """Log in, choose the database, and name the connection for operators (CLIENT LIST)."""
        commands: list[tuple[str | int, ...]] = []
        password = address.current_password()
        if password is not None:
            user = () if address.user is None else (address.user,)
            commands.append(("AUTH", *user, password))
        if address.database:
            commands.append(("SELECT", address.database))
        commands.append((*_NAMING, _name()))
        self.send(b"".join(pack(command) for command in commands))  # type: ignore[arg-type]
        for command in commands:
            try:
                self.read()
            except ReplyError:
                if command[:2] != _NAMING:  # users that may not name themselves work as well
                    raise

    def ask(self, *command: str | int | bytes) -> Any:
        """The reply; an error reply is raised."""
        self.send(pack(command))  # type: ignore[arg-type]  # its stub means a tuple of any length
        return self.read()

    def send(self, packed: bytes) -> None:
        self._socket.sendall(packed)

    def read(self) -> Any:
        reply = self.next_reply()
        while reply is False:
            self.receive()
            reply = self.next_reply()
        return reply

    def next_reply(self) -> Any:
        """A reply that has come already, or False: no script and no command answers that."""
        reply = self._reader.gets()
        if isinstance(reply, ReplyError):
            raise reply
        return reply

    def receive(self) -> None:
        some = self._socket.recv(READ_BYTES)
        if not some:
            raise ConnectionResetError("the server closed the connection")
        self._reader.feed(some)

    def receive_within(self, seconds: float) -> None:
        """Sleep until something comes or the time is up."""
        self._socket.settimeout(max(seconds, 0.001))
        try:
            self.receive()
        except TimeoutError:
            pass
        finally:
            self._socket.settimeout(REPLY_SECONDS)

    def fileno(self) -> int:
        return int(self._socket.fileno())

    def take_in(self) -> None:
        """Read what has come, and wait for nothing."""
        self._socket.settimeout(0.0)
        try:
            while True:
                self.receive()
        except OSError as error:
            if not isinstance(error, BlockingIOError) and type(error).__name__ != _TLS_NOTHING:
                raise
        finally:
            self._socket.settimeout(REPLY_SECONDS)

    def close(self) -> None:
        self._socket.close()


def _name() -> str:
    host = "".join(c if "!" <= c <= "~" else "-" for c in os.uname().nodename)
    return f"sprat-{host}-{os.getpid()}"


def _connected(address: RedisAddress, host: tuple[str, int] | None) -> Any:
    if address.connect is not None and host is not None:
        plain = _handed_over(address.connect(*host))
        return _secured(plain, address, host[0]) if address.tls else plain
    if host is None:
        return _connect(_socket.AF_UNIX, address.path)
    addresses = _socket.getaddrinfo(host[0], host[1], 0, _socket.SOCK_STREAM)
    for family, _, _, _, where in addresses:
        try:
            plain = _connect(family, where)
        except OSError:
            if where == addresses[-1][4]:
                raise
        else:
            return _secured(plain, address, host[0]) if address.tls else plain
    raise ConnectionRefusedError(f"{host[0]} has no address")


def _handed_over(connection: Any) -> Any:
    """What the caller's own function returned."""
    if not all(hasattr(connection, name) for name in ("recv", "sendall", "settimeout", "fileno")):
        kind = type(connection).__name__
        raise InvalidInput(f"connect= must return a connected socket, not {kind}")
    connection.settimeout(REPLY_SECONDS)
    return connection


def _connect(family: int, where: Any) -> Any:
    plain = _socket.socket(family, _socket.SOCK_STREAM)
    try:
        plain.settimeout(CONNECT_SECONDS)
        plain.connect(where)
        if family != _socket.AF_UNIX:
            refuse_itself(plain)
            plain.setsockopt(_socket.IPPROTO_TCP, _socket.TCP_NODELAY, 1)
            plain.setsockopt(_socket.SOL_SOCKET, _socket.SO_KEEPALIVE, 1)
        plain.settimeout(REPLY_SECONDS)
    except BaseException:
        plain.close()
        raise
    return plain


def refuse_itself(plain: Any) -> None:
    """If no server listens on a port of the ephemeral range, the kernel may make it our own port
    and connect the socket to itself: commands would be read as replies."""
    if plain.getsockname() == plain.getpeername():
        raise ConnectionRefusedError("nobody listens there")


def _secured(plain: Any, address: RedisAddress, name: str) -> Any:
    import socket

    whole = socket.socket(fileno=plain.detach())
    try:
        whole.settimeout(CONNECT_SECONDS)
        secured = _context(address).wrap_socket(whole, server_hostname=name)
    except BaseException:
        whole.close()
        raise
    secured.settimeout(REPLY_SECONDS)
    return secured


def _context(address: RedisAddress) -> SSLContext:
    """Made for each connection: certificates that live for hours are replaced under our feet."""
    import ssl

    try:
        context = ssl.create_default_context(cafile=address.ca)
        if address.client_certificate is not None:
            context.load_cert_chain(address.client_certificate, address.client_key)
    except OSError as error:
        raise StoreUnavailable(
            f"the file of ca= in the URL, SPRAT_CLIENT_CERTIFICATE or SPRAT_CLIENT_KEY "
            f"cannot be used: {error}"
        ) from None
    return context
