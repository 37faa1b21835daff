"""Accepts TLS connections, so that each counts and has a time limit before its handshake ends.

An event loop's own TLS server makes the protocol's connection when the handshake is complete:
silent connections would be in no count.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sized

ACCEPT_PAUSE_SECONDS = 0.5  # when the process has no file descriptor left


class TlsListener:
    """Closes as uvicorn expects of the servers of an event loop."""

    def __init__(
        self,
        listening: socket.socket,
        context: ssl.SSLContext,
        protocol: Callable[[], asyncio.Protocol],
        *,
        seconds: float,
        connections: Sized,
        max_sockets: int,
    ) -> None:
        self._listening = listening
        self._context = context
        self._protocol = protocol
        self._seconds = seconds
        self._connections = connections  # whose handshake is complete
        self._max_sockets = max_sockets
        self._handshakes: set[asyncio.Task[None]] = set()
        self._loop = asyncio.get_running_loop()
        listening.setblocking(False)
        self._accepting = self._loop.create_task(self._accept())

    def close(self) -> None:
        for task in (self._accepting, *self._handshakes):
            task.cancel()

    async def wait_closed(self) -> None:
        await asyncio.gather(self._accepting, *self._handshakes, return_exceptions=True)

    async def _accept(self) -> None:
        while True:
            try:
                accepted, _ = await self._loop.sock_accept(self._listening)
            except OSError:
                await asyncio.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            if len(self._connections) + len(self._handshakes) >= self._max_sockets:
                accepted.close()
                continue
            task = self._loop.create_task(self._shake_hands(accepted))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, accepted: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(
                self._protocol,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._seconds,
            )
        except OSError:  # no TLS, no certificate, gone, or too slow
            accepted.close()
