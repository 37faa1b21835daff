"""Store URLs: redis://, rediss:// (TLS), redis+unix://, redis+sentinel://, and valkey for redis."""

from __future__ import annotations

from sprat.errors import InvalidInput
from sprat.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

PORT = 6379
SENTINEL_PORT = 26379
SCHEMES = ("redis", "rediss", "redis+unix", "redis+sentinel", "rediss+sentinel")
OPTIONS = ("store", "ca", "sentinel_password")
_HOW = "write redis://:password@host:6379/0"


class Address(Record):
    """Where the server is, and what to say to it."""

    hosts: tuple[tuple[str, int], ...]  # of the server, or of its sentinels
    path: str | None = None  # of a Unix socket
    service: str | None = None  # the name under which the sentinels watch the server
    database: int = 0
    user: str | None = None
    password: str | None = None
    sentinel_password: str | None = None
    tls: bool = False
    ca: str | None = None  # a file with the certificates to trust
    store: str = "sprat"  # several stores may share a server

    @property
    def tag(self) -> str:
        """The beginning of every key: braces make all of them fall into one slot of a cluster."""
        return "{" + self.store + "}"

    def __str__(self) -> str:
        """The address as it may be shown: without the password."""
        scheme = ("rediss" if self.tls else "redis") + ("+sentinel" if self.service else "")
        if self.path is not None:
            return f"redis+unix://{self.path}"
        hosts = ",".join(_shown(host, port) for host, port in self.hosts)
        service = f"/{self.service}" if self.service else ""
        return f"{scheme}://{hosts}{service}/{self.database}"


def parse(url: str) -> Address:
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
    about = Address(
        hosts=(),
        user=user,
        password=password,
        tls=tls,
        ca=options.get("ca"),
        sentinel_password=options.get("sentinel_password"),
        store=options.get("store", "sprat"),
    )
    if scheme == "redis+unix":
        return about.replace(path=_unquoted(place))
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


def _options(query: str) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for option in filter(None, query.split("&")):
        name, _, value = option.partition("=")
        if name not in OPTIONS or not value:
            raise InvalidInput(f"unknown option {name!r} in the URL: {', '.join(OPTIONS)}")
        found[name] = _unquoted(value)
    if set("{}:\1") & set(found.get("store", "")):
        raise InvalidInput("store= in the URL is a plain name, without braces and colons")
    return found


def _credentials(rest: str) -> tuple[str | None, str | None, str]:
    said, at, place = rest.rpartition("@")
    if not at:
        return None, None, rest
    user, _, password = said.partition(":")
    return _unquoted(user) or None, _unquoted(password) or None, place


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


def _unquoted(text: str) -> str:
    """%40 is @. (urllib would cost every worker 40 ms.)"""
    first, *others = text.split("%")
    done = [first.encode()]
    for part in others:
        try:
            done.append(bytes([int(part[:2], 16)]) + part[2:].encode())
        except ValueError:
            raise InvalidInput("% in the URL is not followed by two hex digits") from None
    return b"".join(done).decode("utf-8", "replace")
