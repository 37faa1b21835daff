"""`sprat serve`: the orchestrator, in the foreground."""

from __future__ import annotations

import os

from sprat.cli.arguments import CommandParser, seconds, whole
from sprat.cli.target import url_of
from sprat.config.probe_settings import Lifecycle

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.cli.arguments import Namespace
    from sprat.server.options import Options


def parser() -> CommandParser:
    from sprat.server.options import Options

    default = Options()
    made = CommandParser(prog="sprat serve", has_json=False)
    add = made.add_argument
    add("--host", default=default.host, help="the address to serve on; default 127.0.0.1")
    add(
        "--port",
        type=whole(0, 65535),
        default=default.port,
        help="default 8000; 0: any that is free",
    )
    add(
        "--processes",
        type=whole(1, 64),
        default=default.processes,
        metavar="N",
        help="server processes on the same port; default 1",
    )
    add("--no-auth", action="store_true", help="no API keys; only on a loopback address")
    add("--certificate", metavar="FILE", help="serve TLS with this certificate chain (PEM)")
    add("--private-key", metavar="FILE", help="its private key (PEM)")
    add("--client-ca", metavar="FILE", help="clients need a certificate signed by this (PEM)")
    add(
        "--max-connections",
        type=whole(1, 1_000_000),
        default=default.max_connections,
        metavar="N",
        help="of each process; default 10000",
    )
    add(
        "--max-body",
        type=whole(1024, 1 << 30),
        default=default.max_body_bytes,
        metavar="BYTES",
        help="of one request; default 8 MiB",
    )
    add(
        "--linger",
        type=seconds,
        default=default.linger_seconds,
        metavar="SECONDS",
        help="after SIGTERM, go on answering for so long; default 1",
    )
    add("--launch", action="store_true", help="after pushes, start workers on this machine")
    add("--json-logs", action="store_true", help="one JSON object a line")
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    try:
        from sprat.server.serving import serve
    except ImportError as error:
        from sprat.core.errors import MissingExtra

        raise MissingExtra(f"{error.name} is not installed: pip install 'sprat[server]'") from None
    return serve(url_of(asked.url), _options(asked))


def _options(asked: Namespace) -> Options:
    from sprat.config import environment, project_file
    from sprat.server.options import Options

    has_file = os.path.exists(project_file.FILE)
    return Options(
        lifecycle=project_file.load(project_file.FILE).worker_lifecycle
        if has_file
        else Lifecycle(),
        host=asked.host,
        port=asked.port,
        processes=asked.processes,
        auth=not asked.no_auth,
        certificate=asked.certificate,
        private_key=asked.private_key,
        client_ca=asked.client_ca,
        max_connections=asked.max_connections,
        max_body_bytes=asked.max_body,
        linger_seconds=asked.linger,
        json_logs=asked.json_logs,
        launch=asked.launch,
        qps=environment.real(os.environ, "GLOBAL_QPS_LIMIT", 0.0, 1e6),
    )
