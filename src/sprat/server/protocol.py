"""Bounds on a connection, from accept to close: what uvicorn itself waits for without a limit.

- The headers of the first request are complete `header_seconds` after the connection was made,
  those of later requests `header_seconds` after their first byte. No byte extends this time.
- Headers are at most MAX_HEADER_BYTES and MAX_HEADER_LINES. Trailers are dropped.
- After an answer, the rest of an unread body has `header_seconds` to arrive.
- A client that takes no byte of a waiting answer for `piece_seconds` is disconnected.

A connection that waits costs a socket and a timer, and no thread.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

MAX_HEADER_BYTES = 64 * 1024
MAX_HEADER_LINES = 200  # a line takes more memory than its bytes
MAX_PIPELINED = 100  # requests of one connection that wait for their turn
TOLD_SO = 100  # connections beyond the cap are answered with 503, and those beyond these cut off
TOO_LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n"


class _Dropped(list[Any]):
    """Where trailers go."""

    def append(self, _: object) -> None:
        pass


class PatientProtocol(HttpToolsProtocol):
    header_seconds = 10.0
    piece_seconds = 30.0
    max_connections = 10_000
    _headers_timer: asyncio.TimerHandle | None = None
    _answer_timer: asyncio.TimerHandle | None = None
    _is_in_headers = False
    _is_too_large = False
    _answering: RequestResponseCycle | None = None  # uvicorn's `cycle` is the newest request
    _unparsed_bytes = 0  # of whole reads since headers, a part of the body or a message ended

    # -- the connection ---------------------------------------------------------------------

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        if len(self.connections) > self.max_connections + TOLD_SO:
            transport.abort()
            return
        self._expect_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        self._headers_came()
        self._answer_taken()
        if self._answering is not None and not self._answering.response_complete:
            self._answering.disconnected = True
            self._answering.message_event.set()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self._unparsed_bytes += len(data)
        super().data_received(data)
        if self._unparsed_bytes > MAX_HEADER_BYTES or self._has_too_many_lines():
            self._refuse_large()
        elif self._is_idle() and self.timeout_keep_alive_task is None:
            self._expect_headers()  # what came was no request: an empty line, a late body

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    # -- requests ---------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        self._is_in_headers = True
        self._unparsed_bytes = 0
        self._expect_headers()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        sizes = (len(name) + len(value) + 4 for name, value in self.headers)
        if sum(sizes, len(self.url)) > MAX_HEADER_BYTES or self._has_too_many_lines():
            self._is_too_large = True
            raise ValueError("these headers are too large")
        if len(self.pipeline) >= MAX_PIPELINED:
            raise ValueError("too many requests at once")
        self._is_in_headers = False
        self._unparsed_bytes = 0
        self._headers_came()
        super().on_headers_complete()
        if not self.pipeline:
            self._answering = self.cycle
        self.headers = _Dropped()  # the request has the others

    def on_body(self, body: bytes) -> None:
        self._unparsed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unparsed_bytes = 0
        super().on_message_complete()
        if self.cycle.response_complete:  # the body came after the answer: idle from now on
            self._headers_came()
            self.timeout_keep_alive_task = self.loop.call_later(
                self.timeout_keep_alive, self.timeout_keep_alive_handler
            )

    def _has_too_many_lines(self) -> bool:
        return self._is_in_headers and len(self.headers) > MAX_HEADER_LINES

    def _refuse_large(self) -> None:
        self._is_too_large = True
        if not self.transport.is_closing():
            self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        if self.pipeline:
            self.transport.abort()  # an answer here would be taken for that of an earlier request
        elif self._is_too_large:
            self.transport.write(TOO_LARGE)
            self.transport.close()
        else:
            super().send_400_response(msg)
        self._expect_taken()

    # -- limits of time ---------------------------------------------------------------------

    def _expect_headers(self) -> None:
        if self._headers_timer is None:
            self._headers_timer = self.loop.call_later(self.header_seconds, self._abort)

    def _headers_came(self) -> None:
        if self._headers_timer is not None:
            self._headers_timer.cancel()
            self._headers_timer = None

    def on_response_complete(self) -> None:
        if self.pipeline:
            self._answering = self.pipeline[-1][0]
        super().on_response_complete()
        if self.transport.is_closing():
            self._expect_taken()

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self._expect_taken()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._expect_taken()

    def resume_writing(self) -> None:
        super().resume_writing()
        if not self.transport.is_closing():
            self._answer_taken()

    def _expect_taken(self) -> None:
        """From now on the client takes what is written: some of it in every `piece_seconds`."""
        if self._answer_timer is None:
            waiting = self.transport.get_write_buffer_size()
            self._answer_timer = self.loop.call_later(self.piece_seconds, self._look, waiting)

    def _look(self, waited: int) -> None:
        self._answer_timer = None
        if self.transport.get_write_buffer_size() < waited:
            self._expect_taken()
        else:
            self._abort()

    def _answer_taken(self) -> None:
        if self._answer_timer is not None:
            self._answer_timer.cancel()
            self._answer_timer = None

    def _abort(self) -> None:
        self.transport.abort()


def patient(*, header_seconds: float, piece_seconds: float, max_connections: int) -> type[Any]:
    """The protocol with these limits."""
    return type("Patient", (PatientProtocol,), dict(locals()))
