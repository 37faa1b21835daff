"""Which addresses the server may connect to: those of an allow-list, and nothing else.

A worker says itself where it can be reached, so without this anybody with a worker's key could
make the server knock at doors inside its own network. A name is resolved once, the address that
was checked is the one that is connected to, and an IPv4 address hidden in an IPv6 one has to be
allowed as well.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable, Iterable
from urllib.parse import SplitResult, urlsplit

from sprat.core.errors import InvalidInput
from sprat.core.record import Record

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
Resolve = Callable[[str, int], list[str]]

NAT64 = ipaddress.ip_network("64:ff9b::/96")
COMPATIBLE = ipaddress.ip_network("::/96")


class Forbidden(Exception):
    """The address is not on the allow-list."""


class Target(Record):
    """Where to connect, and what to ask for there."""

    address: str
    port: int
    host: str
    is_tls: bool
    path: str


class AllowList:
    """Networks (10.0.0.0/8), single addresses, and names of hosts. An empty one allows nothing."""

    def __init__(self, entries: Iterable[str]) -> None:
        self._networks: list[Network] = []
        self._names: set[str] = set()
        for entry in entries:
            self._add(entry.strip())

    def _add(self, entry: str) -> None:
        try:
            self._networks.append(ipaddress.ip_network(entry))
        except ValueError:
            is_name = all(part.replace("-", "").isalnum() for part in entry.split("."))
            if not is_name or not entry.isascii() or not any(c.isalpha() for c in entry):
                raise InvalidInput(
                    f"{entry!r} is no host to allow: write 10.0.0.0/8, 10.1.2.3 or a host's name"
                ) from None
            self._names.add(entry.lower())

    def __bool__(self) -> bool:
        return bool(self._networks or self._names)

    def target(self, url: str, path: str, resolve: Resolve | None = None) -> Target:
        """Where this URL leads, or Forbidden. Blocks while the name is looked up."""
        parts = read(url)
        host = parts.hostname or ""
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            found = (resolve or resolved)(host, port)
        except (OSError, ValueError):  # UnicodeError: a name that DNS cannot have
            raise Forbidden(f"{host} cannot be resolved") from None
        allowed = [one for one in found if self.allows(host, ipaddress.ip_address(one))]
        if not allowed or len(allowed) < len(found):
            raise Forbidden(f"{host} is not on the list of hosts that may be probed")
        base = parts.path.rstrip("/")
        return Target(
            address=allowed[0],
            port=port,
            host=host,
            is_tls=parts.scheme == "https",
            path=f"{base}{path}",
        )

    def allows(self, host: str, address: Address) -> bool:
        """Whether each meaning of the address is on the list; a name that is listed stands for
        addresses of the network, not for this machine itself."""
        return all(self._allows(host, one) for one in meanings(address))

    def _allows(self, host: str, address: Address) -> bool:
        if any(address in network for network in self._networks):
            return True
        is_special = address.is_loopback or address.is_link_local or address.is_unspecified
        return host.lower() in self._names and not is_special and not address.is_multicast


def read(url: str) -> SplitResult:
    """The parts of a URL that can be a worker's, or Forbidden."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port  # not every port is a number below 65536
        host.encode("idna")  # what the resolver does with it
    except ValueError:
        raise Forbidden(f"{url!r} is not the URL of a host") from None
    if parts.scheme not in ("http", "https") or not host or parts.username is not None:
        raise Forbidden(f"{url!r} is not the URL of a worker")
    return parts


def meanings(address: Address) -> list[Address]:
    """An address, and the IPv4 address that a gateway or the kernel would make of it. One that
    only wraps an IPv4 address for this machine (::ffff:127.0.0.1) means just that."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    if address.ipv4_mapped is not None:
        return [address.ipv4_mapped]
    inner: list[Address] = [address]
    if address.sixtofour is not None:
        inner.append(address.sixtofour)
    if address.teredo is not None:
        inner.extend(address.teredo)
    if address in NAT64 or (address in COMPATIBLE and int(address) > 1):
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
    return inner


def resolved(host: str, port: int) -> list[str]:
    """The addresses of a host, as the system's own resolver reads it: it also knows 127.1."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(info[4][0]).partition("%")[0] for info in found]
