"""How the orchestrator is run: everything that `sprat serve` can be told."""

from __future__ import annotations

from sprat.config.probe_settings import Lifecycle
from sprat.core.record import Record

MIB = 1 << 20


class Options(Record):
    """The defaults are those of `sprat serve`."""

    host: str = "127.0.0.1"
    port: int = 8000
    processes: int = 1
    auth: bool = True  # False: anybody who can connect is an admin, so only on loopback
    threads: int = 16  # that talk to the store; more requests than that wait their turn
    max_connections: int = 10_000
    max_body_bytes: int = 8 * MIB
    header_seconds: float = 10.0  # until a request's headers are all there
    body_seconds: float = 30.0  # between two pieces of a body
    keep_alive_seconds: float = 75.0  # that an unused connection is kept
    max_wait_seconds: float = 30.0  # of one long poll; the client asks again
    qps: float = 0.0  # requests a second over all processes; 0: as many as come
    linger_seconds: float = 1.0  # after a signal, still answering: load balancers notice
    shutdown_seconds: float = 20.0  # for requests that are under way
    certificate: str | None = None  # PEM files: TLS
    private_key: str | None = None
    client_ca: str | None = None  # clients need a certificate that this authority signed
    json_logs: bool = False
    launch: bool = False  # start workers on this machine after pushes, as `sprat push` does
    lifecycle: Lifecycle = Lifecycle()  # how workers that have an endpoint are watched
    reap_seconds: float = 5.0  # between two looks for dead workers; 0: somebody else looks
