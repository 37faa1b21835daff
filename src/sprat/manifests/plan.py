"""What the manifests shall say: the choices that are left to people, checked; and our own names."""

from __future__ import annotations

import ipaddress
from typing import Any

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.launchers.kubernetes.names import POOL, label_of
from sprat.manifests import names

NAMESPACE = SECRET = "sprat"
MAX_WORKERS = 100  # that KEDA or an HPA may start where nothing else is said

# Names of objects, and what their pods are called in the label `component`.
ORCHESTRATOR, CONTROLLER, WORKER, TRIGGER = "orchestrator", "controller", "worker", "trigger"
PORT = 8000  # of the orchestrator
CONTROLLER_PORT = 8001  # health and figures
# Keys of the Secret. That of the workers is another one, with SPRAT_URL and SPRAT_API_KEY.
URL_KEY, CONTROLLER_KEY, VIEWER_KEY = "url", "controller-key", "viewer-key"


class Destination(Record):
    """Where workers may connect to: addresses, and a port (None: all)."""

    cidr: str
    port: int | None = None


class ManifestPlan(Record):
    namespace: str = NAMESPACE
    image: str = ""
    pools: tuple[str, ...] = ()
    secret: str = SECRET
    max_workers: int | None = None  # of a pool; None: as its settings say
    configuration: str | None = None  # the controller's file, as somebody wrote it
    has_url: bool = False  # whether that names another orchestrator than ours
    ways: tuple[Destination, ...] = ()  # what workers may reach besides DNS and the orchestrator

    @property
    def most(self) -> int:
        """How many workers somebody else may start for a pool."""
        return MAX_WORKERS if self.max_workers is None else self.max_workers

    @property
    def worker_secret(self) -> str:
        """Workers run code that others wrote: what they need is in a Secret of its own."""
        return f"{self.secret}-{WORKER}"

    @property
    def server_url(self) -> str:
        """The orchestrator, for pods of its namespace."""
        return f"http://{name(ORCHESTRATOR)}:{PORT}"

    @property
    def far_url(self) -> str:
        """The orchestrator, for everybody in the cluster."""
        return f"http://{name(ORCHESTRATOR)}.{self.namespace}.svc:{PORT}"


def checked(plan: ManifestPlan) -> ManifestPlan:
    """The same plan, or InvalidInput."""
    names.namespace(plan.namespace)
    names.secret(plan.secret)
    if plan.image:
        names.image(plan.image)
    for pool in plan.pools:
        payload.pool_name(pool)
    return plan


def way(text: str) -> Destination:
    """`10.0.0.0/8`, `10.1.2.3:5432` or `[2001:db8::]/32:443`, or InvalidInput."""
    rest, _, after = text.partition("]") if text.startswith("[") else ("", "", text)
    cidr, colon, port = after.rpartition(":") if ":" in after else (after, "", "")
    try:
        network = ipaddress.ip_network(f"{rest[1:]}{cidr}")
        if colon and not (port.isascii() and port.isdecimal() and 0 < int(port) <= 65535):
            raise ValueError(port)
    except ValueError:
        raise InvalidInput(
            f"{text!r} names no addresses: write them as 10.0.0.0/8, with :PORT if only that"
        ) from None
    return Destination(cidr=str(network), port=int(port) if colon else None)


def name(component: str) -> str:
    return f"sprat-{component}"


def labels(component: str, pool: str | None = None) -> dict[str, str]:
    found = {"app.kubernetes.io/name": "sprat", "app.kubernetes.io/component": component}
    return found if pool is None else {**found, POOL: label_of(pool)}


def metadata(called: str, component: str, pool: str | None = None) -> dict[str, Any]:
    return {"name": called, "labels": labels(component, pool)}
