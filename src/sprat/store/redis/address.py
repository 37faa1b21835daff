"""Store URLs: redis://, rediss:// (TLS), redis+unix://, redis+sentinel://, and valkey for redis.
The password and the client certificate may come from the environment: a URL ends up in logs. A
password that changes comes from a file or a function, which are asked for each connection."""

from __future__ import annotations

import os

from sprat.core.errors import InvalidInput, StoreUnavailable
from sprat.core.percent_encoding import unquoted
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from socket import socket

PORT = 6379
SENTINEL_PORT = 26379
SCHEMES = ("redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel")
OPTIONS = ("store", "ca", "connections", "sentinel_user", "sentinel_password")
CONNECTIONS = 10
_HOW = "write redis://:password@host:6379/0"


class RedisAddress(Record):
    """Where the server is, and what to say to it."""

    hosts: tuple[tuple[str, int], ...]  # of the server, or of its sentinels
    path: str | None = None  # of a Unix socket
    service: str | None = None  # the name under which the sentinels watch the server
    database: int = 0
    user: str | None = None
    password: str | Callable[[], str] | None = None
    password_file: str | None = None  # for where there is no other
    sentinel_user: str | None = None
    sentinel_password: str | None = None
    tls: bool = False
    ca: str | None = None  # a file with the certificates to trust
    client_certificate: str | None = None  # a file with the one to show
    client_key: str | None = None  # a file with its key, where that is another
    store: str = "sprat"  # several stores may share a server
    connect: Callable[[str, int], socket] | None = None  # instead of sprat's own way to the server
    connections: int = CONNECTIONS  # of one process, besides one per thread that waits for work

    @property
    def tag(self) -> str:
        """The beginning of every key: braces make all of them fall into one slot of a cluster."""
        return "{" + self.store + "}"

    def current_password(self) -> str | None:
        """The password to use now."""
        if self.password is None and self.password_file is not None:
            return _content(self.password_file)
        if not callable(self.password):
            return self.password
        password = self.password()
        if not isinstance(password, str):
            raise InvalidInput(f"password= returned {type(password).__name__}, not a string")
        return password

    def __str__(self) -> str:
        """The address as it may be shown: without the password."""
        scheme = ("rediss" if self.tls else "redis") + ("+sentinel" if self.service else "")
        if self.path is not None:
            return f"redis+unix://{self.path}"
        hosts = ",".join(_shown(host, port) for host, port in self.hosts)
        service = f"/{self.service}" if self.service else ""
        return f"{scheme}://{hosts}{service}/{self.database}"


def parse(url: str, environment: Mapping[str, str] | None = None) -> RedisAddress:
    variables = os.environ if environment is None else environment
    scheme, _, rest = url.partition("://")
    scheme = scheme.replace("valkey", "redis", 1)
    if scheme not in SCHEMES:
        raise InvalidInput(f"unknown kind of store {scheme!r} in the URL: {_HOW}")
    rest, _, query = rest.partition("?")
    options = _options(query)
    user, password, place = _credentials(rest)
    tls = scheme.startswith("rediss")
    if options.get("ca") and not tls:
        raise InvalidInput("ca= needs TLS: write rediss://")
    about = RedisAddress(
        hosts=(),
        user=user,
        password=password or variables.get("SPRAT_REDIS_PASSWORD") or None,
        password_file=variables.get("SPRAT_REDIS_PASSWORD_FILE") or None,
        tls=tls,
        ca=options.get("ca"),
        client_certificate=variables.get("SPRAT_CLIENT_CERTIFICATE") or None,
        client_key=variables.get("SPRAT_CLIENT_KEY") or None,
        sentinel_user=options.get("sentinel_user"),
        sentinel_password=options.get("sentinel_password"),
        store=options.get("store", "sprat"),
        connections=_connections(options.get("connections", str(CONNECTIONS))),
    )
    if scheme == "redis+unix":
        return about.replace(path=unquoted(place))
    names, _, path = place.partition("/")
    if scheme.endswith("+sentinel"):
        service, _, database = path.partition("/")
        if not service:
            raise InvalidInput(
                "the URL names no service: write redis+sentinel://host:26379,host2:26379/service/0"
            )
        hosts = tuple(_host(name, SENTINEL_PORT) for name in names.split(","))
        return about.replace(hosts=hosts, service=service, database=_database(database))
    return about.replace(hosts=(_host(names, PORT),), database=_database(path))


def _content(path: str) -> str:
    try:
        with open(path) as file:
            return file.read().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        raise StoreUnavailable(f"SPRAT_REDIS_PASSWORD_FILE cannot be read: {error}") from None


def _options(query: str) -> Mapping[str, str]:
    options: dict[str, str] = {}
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name not in OPTIONS or not value:
            raise InvalidInput(f"unknown option {name!r} in the URL: {', '.join(OPTIONS)}")
        options[name] = unquoted(value)
    if set("{}:\1") & set(options.get("store", "")):
        raise InvalidInput("store= in the URL is a plain name, without braces and colons")
    return options


def _connections(value: str) -> int:
    if not (value.isascii() and value.isdigit()) or not 1 <= int(value[:9]) <= 1000:
        raise InvalidInput(f"connections={value[:20]} in the URL: write a number from 1 to 1000")
    return int(value)


def _credentials(rest: str) -> tuple[str | None, str | None, str]:
    credentials, at, place = rest.rpartition("@")
    if not at:
        return None, None, rest
    user, _, password = credentials.partition(":")
    return unquoted(user) or None, unquoted(password) or None, place


def _host(name: str, default: int) -> tuple[str, int]:
    if name.startswith("["):  # IPv6
        host, _, port = name[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = name.partition(":")
    if port and not (port.isascii() and port.isdigit() and 0 < int(port) < 65536):
        raise InvalidInput(f"{port[:20]!r} in the URL is not a port: {_HOW}")
    return host or "localhost", int(port or default)


def _database(path: str) -> int:
    path = path.strip("/")
    if path and not (path.isascii() and path.isdigit()):
        raise InvalidInput(f"{path[:20]!r} in the URL is not the number of a database: {_HOW}")
    return int(path or 0)


def _shown(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
