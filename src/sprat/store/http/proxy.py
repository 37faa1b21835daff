"""The proxy on the way to an orchestrator, from the variables that other programs read too.

`HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY`, also in small letters, which come first.
"""

from __future__ import annotations

import binascii

from sprat.core import percent_encoding
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.store.http.address import host_and_port

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping


class Proxy(Record):
    host: str
    port: int
    login: str = ""  # a header line with user and password, or nothing

    def __repr__(self) -> str:
        return f"Proxy({self.host}:{self.port})"


def find(host: str, port: int, *, is_tls: bool, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy for this host; None: connect to the host itself."""
    name = "https_proxy" if is_tls else "http_proxy"
    url = _variable(environment, name)
    if not url or _is_exempt(host.lower(), port, _variable(environment, "no_proxy")):
        return None
    return _read(url, name.upper())


def _variable(environment: Mapping[str, str], name: str) -> str:
    return (environment.get(name) or environment.get(name.upper()) or "").strip()


def _read(url: str, name: str) -> Proxy:
    scheme, _, rest = url.rpartition("://")
    who, at, place = rest.partition("/")[0].rpartition("@")
    if scheme not in ("", "http"):
        raise InvalidInput(f"{name} must be http://host:port, not {scheme}://{place}")
    host, port = host_and_port(place, 80, f"http://{place}")
    if not at:
        return Proxy(host=host, port=port)
    user, _, password = who.partition(":")
    login = f"{percent_encoding.unquoted(user)}:{percent_encoding.unquoted(password)}"
    coded = binascii.b2a_base64(login.encode(), newline=False).decode()
    return Proxy(host=host, port=port, login=f"proxy-authorization: Basic {coded}\r\n")


def _is_exempt(host: str, port: int, text: str) -> bool:
    """NO_PROXY: hosts, domains with all that is in them, networks, or * for everything."""
    return any(_is_in(host, port, one) for one in text.lower().replace(",", " ").split())


def _is_in(host: str, port: int, entry: str) -> bool:
    if entry == "*" or entry.strip("[]") == host:
        return True
    if "/" in entry:
        return _is_in_network(host, entry)
    name, _, number = entry.removeprefix("*").rpartition(":")
    if name and number.isdecimal():
        if int(number) != port:
            return False
        entry = name
    domain = entry.lstrip("*.")
    return bool(domain) and (host == domain or host.endswith(f".{domain}"))


def _is_in_network(host: str, entry: str) -> bool:
    import ipaddress

    try:
        return ipaddress.ip_address(host) in ipaddress.ip_network(entry, strict=False)
    except ValueError:
        return False  # a name, or an entry that other programs understand
