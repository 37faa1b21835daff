"""How patient the server is with a connection before there is a request to answer.

uvicorn waits for ever for the headers of a request. Here they have to be complete in time, and
small; who sends them a byte a minute is cut off, and meanwhile costs a socket and no thread.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 64 * 1024
TOLD_SO = 100  # connections beyond the cap are answered with 503, and those beyond these cut off
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


class PatientProtocol(HttpToolsProtocol):
    header_seconds = 10.0
    max_connections = 10_000
    _timer: asyncio.TimerHandle | None = None
    _header_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections + TOLD_SO:
            transport.abort()
            return
        self._begin()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._timer is not None:
            self._header_bytes += len(data)
            if self._header_bytes > MAX_HEADER_BYTES:
                self.transport.write(TOO_LARGE)
                self.transport.close()

    def on_message_begin(self) -> None:
        if self._timer is None:
            self._begin()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end()
        super().on_headers_complete()

    def _begin(self) -> None:
        self._header_bytes = 0
        self._timer = self.loop.call_later(self.header_seconds, self._give_up)

    def _end(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._timer = None
        self.transport.abort()


def patient(header_seconds: float, max_connections: int) -> type[Any]:
    """The protocol with these limits."""
    limits = {"header_seconds": header_seconds, "max_connections": max_connections}
    return type("Patient", (PatientProtocol,), limits)
