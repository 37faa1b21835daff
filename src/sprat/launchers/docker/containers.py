"""What a container for a worker looks like: its name, labels, command, environment and limits."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from typing import Any

from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.core.record import Record
from sprat.launchers.docker.options import Options, size

POOL = "sprat.pool"
WORKER = "sprat.worker"
STORE = "sprat.store"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,200}")
SECRET = re.compile(r"(?<=[?&])password=[^&]*")
LOOPBACK = re.compile(r"(localhost|127\.[0-9.]+|\[::1\])(:[0-9]+)?")


class ContainerOrder(Record):
    """What all containers of one launch have in common."""

    url: str
    pool: str
    options: Options
    environment: Mapping[str, str]
    engine: str  # which one it is

    def name(self, worker_id: str) -> str:
        return container_name(self.pool, worker_id)


def order(
    url: str, pool: str, *, settings: PoolSettings, options: Options, engine: str
) -> ContainerOrder:
    """The order, or InvalidInput when its containers could not reach the store."""
    check_reach(url, options)
    return ContainerOrder(
        url=url,
        pool=pool,
        options=options,
        environment=_environment(url, settings, options),
        engine=engine,
    )


def container_name(pool: str, worker_id: str) -> str:
    """The same for the same worker: an engine makes no second container of a name."""
    end = worker_id if NAME.fullmatch(worker_id) else _short(worker_id)
    return f"sprat-{pool}-{end}"


def place(name: str, engine: str) -> str:
    """Where a worker says that it is."""
    return f"{name}@{engine}"


def labels(url: str, pool: str) -> dict[str, str]:
    """By which a pool of a store finds its containers again, and no others."""
    return {STORE: mark(url), POOL: pool}


def mark(url: str) -> str:
    """A short name for a store that tells nothing about it, the same after a change of password."""
    scheme, _, rest = url.partition("://")
    access, slash, path = rest.partition("/")
    credentials, at, where = access.rpartition("@")
    return _short(
        f"{scheme}://{credentials.partition(':')[0]}{at}{where}{slash}{SECRET.sub('', path)}"
    )


def check_reach(url: str, options: Options) -> None:
    """Refuse what can only fail inside a container, and is not easily understood there."""
    if not url or url.startswith("memory:"):
        raise InvalidInput(
            "containers cannot share a memory store: use PostgreSQL or `sprat serve`"
        )
    if url.startswith("sqlite:"):
        path = url.partition(":///")[2].partition("?")[0]
        targets = [volume.split(":")[1].rstrip("/") for volume in options.volumes]
        if not any(path.startswith(f"{target}/") for target in targets):
            home = os.path.dirname(path)
            raise InvalidInput(
                f"the store is a file of this machine, which containers do not see: add "
                f"{home}:{home} to launcher_options.volumes, or use PostgreSQL or `sprat serve`"
            )
        return
    host = url.partition("://")[2].partition("/")[0].rpartition("@")[2]
    shares = options.network is not None and options.network.startswith(("host", "container:"))
    if LOOPBACK.fullmatch(host) and not shares:
        raise InvalidInput(
            f"the store is at {host}, which inside a container is the container itself: set "
            f"launcher_options.network to host, or use an address that containers can reach"
        )


def specification(client: Any, order: ContainerOrder, worker_id: str) -> dict[str, Any]:
    """The arguments of the SDK's create_container."""
    options = order.options
    name = order.name(worker_id)
    where = {"SPRAT_PLACE": place(name, order.engine)}
    return {
        "image": options.image,
        "name": name,
        "entrypoint": list(options.command),
        "command": ["work", order.pool, "--worker-id", worker_id, "--launched"],
        "environment": {**order.environment, **where},
        "labels": {
            **options.labels,
            **labels(order.url, order.pool),
            WORKER: worker_id,
        },
        "user": options.user,
        "stop_timeout": round(options.stop_seconds),
        "host_config": client.create_host_config(
            network_mode=options.network,
            binds=list(options.volumes),
            mem_limit=None if options.memory is None else size(options.memory),
            nano_cpus=None if options.cpus is None else round(options.cpus * 1e9),
            read_only=options.read_only,
            tmpfs={"/tmp": ""} if options.read_only else None,
            init=options.init,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
        ),
    }


def _environment(url: str, settings: PoolSettings, options: Options) -> dict[str, str]:
    """What a container gets of ours; secrets are here, and never in a command line."""
    key = os.environ.get("SPRAT_WORKER_API_KEY") or os.environ.get("SPRAT_API_KEY")
    return {
        **options.environment,
        **{name: os.environ[name] for name in settings.environment if name in os.environ},
        **({"SPRAT_API_KEY": key} if key else {}),
        **({"SPRAT_ALLOW_HTTP": "1"} if os.environ.get("SPRAT_ALLOW_HTTP") == "1" else {}),
        "SPRAT_URL": url,
        "SPRAT_DIRECTORY": options.directory,
    }


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
