"""Where an orchestrator is, and what to show it: read from the URL and the environment."""

from __future__ import annotations

import os

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from sprat.store.http.proxy import Proxy


ALLOW_HTTP = "SPRAT_ALLOW_HTTP"  # set to 1: http:// may leave this machine


class ServerAddress(Record):
    """The key is no field that is ever shown."""

    host: str
    port: int
    is_tls: bool = False
    prefix: str = ""  # of every path, where the orchestrator is not at the root
    key: str | None = None
    ca_file: str | None = None
    client_certificate: str | None = None
    client_key: str | None = None
    timeout_seconds: float = 10.0
    proxy: Proxy | None = None

    def __repr__(self) -> str:
        return f"Address({self.shown!r})"

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    @property
    def shown(self) -> str:
        return f"{'https' if self.is_tls else 'http'}://{self.authority}{self.prefix}"


def read(url: str, environment: Mapping[str, str] | None = None) -> ServerAddress:
    """The address in a URL. Keys come from the environment: a URL ends up in logs and in `ps`."""
    given = os.environ if environment is None else environment
    scheme, _, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    if "@" in place:
        raise InvalidInput("keep passwords out of the URL: the API key goes into SPRAT_API_KEY")
    if "?" in rest or "#" in rest:
        raise InvalidInput(f"the URL of an orchestrator has no options: {scheme}://{place}")
    is_tls = scheme == "https"
    host, port = host_and_port(place, 443 if is_tls else 80, url)
    is_here = _is_loopback(host)
    if not is_tls and not is_here and given.get(ALLOW_HTTP) != "1":
        raise InvalidInput(
            f"{scheme}://{place} is not encrypted: everything on the way could read the key and "
            f"change what workers run; use https://, or set {ALLOW_HTTP}=1 in a private network"
        )
    return ServerAddress(
        host=host,
        port=port,
        is_tls=is_tls,
        prefix=(slash + path).rstrip("/"),
        key=_key(given.get("SPRAT_API_KEY")),
        ca_file=given.get("SPRAT_CA_FILE") or None,
        client_certificate=given.get("SPRAT_CLIENT_CERTIFICATE") or None,
        client_key=given.get("SPRAT_CLIENT_KEY") or None,
        proxy=None if is_here else _proxy(host, port, is_tls=is_tls, environment=given),
    )


def _proxy(host: str, port: int, *, is_tls: bool, environment: Mapping[str, str]) -> Proxy | None:
    name = "https_proxy" if is_tls else "http_proxy"
    if not environment.get(name) and not environment.get(name.upper()):
        return None
    from sprat.store.http import proxy

    return proxy.find(host, port, is_tls=is_tls, environment=environment)


def host_and_port(place: str, default: int, url: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    is_number = port.isascii() and port.isdecimal() and 0 < int(port[:6]) < 65536
    is_host = host and host.isascii() and host.isprintable() and " " not in host
    if not is_host or (port and not is_number):
        raise InvalidInput(f"{url!r} is no address: write http://host:port or https://host")
    return host, int(port) if port else default


def _is_loopback(host: str) -> bool:
    """By what the host is called: a name may mean another machine a moment later."""
    is_ipv4 = host.startswith("127.") and host.replace(".", "").isdecimal()
    return is_ipv4 or host == "::1" or host.lower() == "localhost"


def _key(text: str | None) -> str | None:
    text = (text or "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isprintable() and " " not in text and len(text) < 300):
        raise InvalidInput("SPRAT_API_KEY is no API key: `sprat keys create` makes one")
    return text
