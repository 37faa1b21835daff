"""Running the server: one process or several on the same socket, until told to stop.

On SIGTERM it says so first (/readyz and registrations answer 503, whoever waits for work is sent
home), goes on answering for a moment so that load balancers notice, and then finishes what is
under way. A second signal skips the moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import ssl
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from sprat.config.probe_settings import UNWATCHED
from sprat.core.errors import InvalidInput
from sprat.server import keys, logs
from sprat.server.application import application
from sprat.server.launch_on_push import Arrivals
from sprat.server.options import Options
from sprat.server.protocol import TOLD_SO, patient
from sprat.server.state import ServerState
from sprat.server.tls_listener import TlsListener
from sprat.store.open_store import open_store
from sprat.store.store import Store

log = logging.getLogger("sprat.server")

BACKLOG = 2048
RESTART_PAUSE_SECONDS = 1.0  # before a process that died is replaced


class Server(uvicorn.Server):
    """A uvicorn server that announces its end."""

    def __init__(self, config: uvicorn.Config, state: ServerState) -> None:
        super().__init__(config)
        self._state = state

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        options = self._state.options
        if options.certificate is None:
            await super().startup(sockets)
            return
        await super().startup([])
        for listening in sockets or []:
            self.servers.append(self._tls_listener(listening, options))  # type: ignore[arg-type]

    def _tls_listener(self, listening: socket.socket, options: Options) -> TlsListener:
        """Takes the place of an event loop's server, of which uvicorn uses the same methods."""

        def protocol() -> asyncio.Protocol:
            return self.config.http_protocol_class(
                self.config,  # type: ignore[call-arg]  # uvicorn declares the base class
                self.server_state,
                self.lifespan.state,
            )

        return TlsListener(
            listening,
            _tls_context(options),
            protocol,
            seconds=options.header_seconds,
            connections=self.server_state.connections,
            max_sockets=options.max_connections + TOLD_SO,
        )

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._state.is_leaving:
            self._end()
            return
        self._state.is_leaving = True
        asyncio.get_event_loop().call_soon_threadsafe(self._begin_to_leave)

    def _begin_to_leave(self) -> None:
        log.info("shutting down")
        self._state.leave()
        asyncio.get_running_loop().call_later(self._state.options.linger_seconds, self._end)

    def _end(self) -> None:
        self.should_exit = True


def server(store: Store, options: Options, number: int = 1) -> Server:
    """A server for this store, ready to be run on a socket: the one with this number."""
    app = application(store.backend, options)
    app.state.sprat.process = f"{socket.gethostname()}:{number}"
    config = uvicorn.Config(
        app,
        http=patient(
            header_seconds=options.header_seconds,
            piece_seconds=options.body_seconds,
            max_connections=options.max_connections,
        ),
        ws="none",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=options.max_connections + 1,  # uvicorn refuses at this number
        timeout_keep_alive=int(options.keep_alive_seconds),
        timeout_graceful_shutdown=int(options.shutdown_seconds),
    )
    if options.launch:
        app.state.sprat.arrivals = Arrivals(store)
    return Server(config, app.state.sprat)


def serve(url: str, options: Options) -> int:
    """Serve until told to stop; the exit code."""
    check(options)
    listening = bind(options)
    logs.set_up(as_json=options.json_logs)
    host, port = listening.getsockname()[:2]
    scheme = "https" if options.certificate else "http"
    shown = f"[{host}]" if ":" in host else host
    log.info("serving %s on %s://%s:%s", _without_password(url), scheme, shown, port)
    if options.processes == 1:
        return run(url, options, listening)
    return supervise(lambda number: run(url, options, listening, number), options.processes)


def run(url: str, options: Options, listening: socket.socket, number: int = 1) -> int:
    """One server process; they are numbered from 1."""
    signal.signal(signal.SIGTERM, _leave_at_once)  # until the server has its own way to leave
    with open_store(url) as store:
        _say_how_open_it_is(store, options)
        server(store, options, number).run(sockets=[listening])
    return 0


def _leave_at_once(*_: object) -> None:
    raise SystemExit(0)


def check(options: Options) -> None:
    """Refuse what would be unsafe, or would fail later."""
    if not options.auth and not is_loopback(options.host):
        raise InvalidInput(
            f"without API keys anybody who reaches {options.host} could do anything: "
            f"leave out --no-auth, or serve on 127.0.0.1"
        )
    if bool(options.certificate) != bool(options.private_key):
        raise InvalidInput("TLS needs both --certificate and --private-key")
    if options.client_ca and not options.certificate:
        raise InvalidInput("--client-ca needs TLS: give --certificate and --private-key too")
    for path in (options.certificate, options.private_key, options.client_ca):
        if path and not os.access(path, os.R_OK):
            raise InvalidInput(f"{path} cannot be read")
    if options.certificate:
        _tls_context(options)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the address. A name counts by what it leads to."""
    import ipaddress

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return all(ipaddress.ip_address(info[4][0]).is_loopback for info in found)


def bind(options: Options) -> socket.socket:
    """The listening socket, so that a port in use is known before anything starts."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            options.host, options.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        listening = socket.socket(family, kind, number)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        raise InvalidInput(
            f"cannot serve on {options.host}:{options.port}: {error.strerror}"
        ) from None
    listening.set_inheritable(True)
    return listening


def supervise(start: Callable[[int], int], processes: int) -> int:
    """Keep this many processes running until a signal. The parent never opens the store."""
    children: dict[int, int] = {}  # process id: its number
    is_leaving = False

    def stop(*_: object) -> None:
        nonlocal is_leaving
        is_leaving = True
        for pid in list(children):
            os.kill(pid, signal.SIGTERM)

    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGINT, stop)
    for number in range(1, processes + 1):
        children[_fork(start, number)] = number
    while children:
        pid, _ = os.wait()
        ended = children.pop(pid, None)
        if ended is not None and not is_leaving:
            log.error("a server process died: starting another")
            time.sleep(RESTART_PAUSE_SECONDS)
            children[_fork(start, ended)] = ended
        if is_leaving:
            stop()
    return 0


def _fork(start: Callable[[int], int], number: int) -> int:
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        code = start(number)
    except SystemExit:
        code = 0
    except BaseException:
        log.exception("a server process ends")
    finally:
        os._exit(code)


def _tls_context(options: Options) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(str(options.certificate), options.private_key, password="")
    except (ssl.SSLError, ValueError):
        raise InvalidInput(
            f"{options.certificate} and {options.private_key} must be a certificate and its key, "
            f"without a password, in PEM form"
        ) from None
    if options.client_ca is None:
        return context
    try:
        context.load_verify_locations(options.client_ca)
    except ssl.SSLError:
        raise InvalidInput(f"{options.client_ca} must be certificates in PEM form") from None
    context.verify_mode = ssl.CERT_REQUIRED
    return context


def _say_how_open_it_is(store: Store, options: Options) -> None:
    if not options.auth:
        log.warning(
            "API KEYS ARE OFF: every program of every user on this machine can do anything here"
        )
    elif not store.backend.documents(keys.KIND, 1, None):
        log.warning("there is no API key yet: `sprat keys create --role admin` makes one")
    if options.lifecycle.is_in_vain:
        log.warning(UNWATCHED)


def _without_password(url: str) -> str:
    """A store's URL as it may be logged."""
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.rpartition('@')[2].partition('?')[0]}"
