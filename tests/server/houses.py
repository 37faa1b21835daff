"""A served store with a key for every role and tenant, and a client to talk to it."""

from __future__ import annotations

import http.client
import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from servers.orchestrator import Served

from sprat.server import keys
from sprat.server.options import Options
from sprat.server.roles import ROLES
from sprat.store.memory.backend import MemoryBackend
from sprat.store.store import Store

TENANTS = (None, "acme", "umbrella", "initech")
OPTIONS = Options(port=0, reap_seconds=0, linger_seconds=0, shutdown_seconds=2)


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: Any


class Client:
    """Sends requests with one key."""

    def __init__(self, port: int, key: str | None = None, secret: str | None = None) -> None:
        self.port = port
        self.key = key
        self.secret = secret

    def __call__(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> Reply:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {} if self.key is None else {"Authorization": f"Bearer {self.key}"}
        if self.secret is not None:
            sent["Sprat-Worker-Secret"] = self.secret
        raw = body if isinstance(body, bytes | None) else json.dumps(body)
        if raw is not None:
            sent["Content-Type"] = "application/json"
        connection.request(method, path, raw, {**sent, **(headers or {})})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        found = {name.lower(): value for name, value in answer.getheaders()}
        is_json = found.get("content-type", "").startswith("application/json")
        return Reply(answer.status, found, json.loads(text) if is_json else text.decode())

    def speaking(self, secret: str) -> Client:
        """The same key, for the worker that has this secret."""
        return Client(self.port, self.key, secret)


class House:
    """A server over a memory store whose clock a test can move, and all its keys."""

    def __init__(self, options: Options = OPTIONS) -> None:
        self.now = 1_700_000_000.0
        self.store = Store(MemoryBackend(clock=lambda: self.now))
        self.keys = {
            (role, tenant): keys.create(self.store.backend, (role,), tenant=tenant)[1]
            for role in ROLES
            for tenant in TENANTS
        }
        self.served = Served(self.store, options)

    def client(self, role: str, tenant: str | None = None) -> Client:
        return Client(self.served.port, self.keys[role, tenant])

    def close(self) -> None:
        self.served.stop()
