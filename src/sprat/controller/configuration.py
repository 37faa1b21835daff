"""What a controller is told: worker-controller-config.yaml, and the environment, which beats it.

Whatever is wrong is told in one sentence, with file and line where it is the file. Where one thing
is given under two names that do not agree, the first is used and a warning says so.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from sprat.config.environment import numbers
from sprat.config.project_file import beside, named_store
from sprat.controller import config_file, limits
from sprat.controller.config_file import ControlledScaleSet, ControllerFile
from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record

FILE = "worker-controller-config.yaml"


class Configuration(Record):
    """All that a controller needs to begin."""

    url: str
    scale_sets: tuple[ControlledScaleSet, ...]
    environment: Mapping[str, float] = {}  # limits that beat those of every scale set
    config_ttl_seconds: float = config_file.CONFIG_TTL_SECONDS
    lease_seconds: float = config_file.LEASE_SECONDS
    drain_deadline_seconds: float | None = None
    warnings: tuple[str, ...] = ()

    @property
    def is_remote(self) -> bool:
        return _is_orchestrator(self.url)


def load(
    path: str | None, environment: Mapping[str, str], *, url: str | None = None
) -> Configuration:
    """Read the file (None: the usual one, if it is there) and the environment. `url` is the
    store's, from the command line."""
    is_there = path is not None or os.path.exists(FILE)
    found = config_file.read(path or FILE) if is_there else ControllerFile()
    if found.store is not None:
        found = found.replace(store=beside(found.store, os.path.dirname(path or "")))
    warnings = list(found.warnings)
    where = _url(found, environment, url, warnings)
    sets = _scale_sets(found, environment, path or FILE)
    _require(where, sets)
    _require_launchers(sets, path or FILE)
    assert where is not None
    given = numbers(environment, limits.FIELDS)
    warnings += _contradictions(sets, given)
    return Configuration(
        url=where,
        scale_sets=sets,
        environment=given,
        config_ttl_seconds=found.config_ttl_seconds,
        lease_seconds=found.lease_seconds,
        drain_deadline_seconds=found.drain_deadline_seconds,
        warnings=tuple(warnings),
    )


def _url(
    found: ControllerFile, environment: Mapping[str, str], flag: str | None, warnings: list[str]
) -> str | None:
    """The first that is given: on the command line, in the environment, in the file, or in the
    sprat.yml of this directory."""
    sources = {
        "--url": flag,
        "ORCHESTRATOR_URL": environment.get("ORCHESTRATOR_URL", "").strip(),
        "SPRAT_URL": environment.get("SPRAT_URL", "").strip(),
        "orchestrator_url": found.orchestrator_url,
        "store": found.store,
    }
    known = {name: value for name, value in sources.items() if value}
    first = next(iter(known), None)
    if first is None:
        return named_store(environment)
    same_place = [{"ORCHESTRATOR_URL", "SPRAT_URL"}, {"orchestrator_url", "store"}]
    warnings += [
        f"{first} and {name} name two stores: {first} is used"
        for name, value in known.items()
        if value != known[first] and {first, name} in same_place
    ]
    if first in ("ORCHESTRATOR_URL", "orchestrator_url") and not _is_orchestrator(known[first]):
        raise InvalidInput(f"{first} must begin with http:// or https://, not {known[first]!r}")
    return known[first]


def _is_orchestrator(url: str) -> bool:
    return url.startswith(("http://", "https://"))


def _scale_sets(
    found: ControllerFile, environment: Mapping[str, str], path: str
) -> tuple[ControlledScaleSet, ...]:
    """Those of the file, or the one that the environment describes."""
    sets: Sequence[ControlledScaleSet] = found.scale_sets or (ControlledScaleSet(),)
    tenant = environment.get("TENANT_ID", "").strip()
    group = environment.get("MACHINE_GROUP", "").strip()
    if group and len(sets) > 1:
        raise InvalidInput(
            f"MACHINE_GROUP is one group, but {path} has {len(sets)} scale_sets: unset it"
        )
    if tenant:
        payload.label(tenant, "TENANT_ID")
        sets = [one.replace(tenant=tenant) for one in sets]
    if group:
        payload.label(group, "MACHINE_GROUP")
        sets = [one.replace(group=group) for one in sets]
    return tuple(sets)


def _require(url: str | None, sets: Sequence[ControlledScaleSet]) -> None:
    """Say all that is missing at once. Who names a pool says enough, and a store that is no
    orchestrator has no tenants."""
    missing = [] if url else ["ORCHESTRATOR_URL"]
    if url is None or _is_orchestrator(url):
        unnamed = [one for one in sets if one.pool is None]
        missing += ["TENANT_ID"] if any(one.tenant is None for one in unnamed) else []
        missing += ["MACHINE_GROUP"] if any(one.group is None for one in unnamed) else []
    if missing:
        is_one = len(missing) == 1
        names = ", ".join(missing[:-1]) + ("" if is_one else " and ") + missing[-1]
        other = "" if url else "; SPRAT_URL or sprat.yml names a store without an orchestrator"
        raise InvalidInput(
            f"{names} {'is' if is_one else 'are'} missing: set {'it' if is_one else 'them'} in "
            f"the environment, or in {FILE} as {', '.join(name.lower() for name in missing)}"
            f"{other}"
        )


def _require_launchers(sets: Sequence[ControlledScaleSet], path: str) -> None:
    """A pool's settings may be a tenant's, and a launcher runs programs on this machine."""
    if any(one.launcher is None for one in sets):
        raise InvalidInput(
            f"{path} names no launcher: add launcher: process, docker or kubernetes to it; "
            f"the pool's settings do not say where a controller starts workers"
        )


def _contradictions(
    sets: Sequence[ControlledScaleSet], environment: Mapping[str, float]
) -> list[str]:
    """What can be known now not to fit together; it works all the same."""
    notes = []
    for one in sets:
        given = {**one.overrides, **environment}
        low, high = given.get("min_replicas"), given.get("max_replicas")
        if low is not None and high is not None and low > high:
            notes.append(
                f"{one.shown}: min_replicas {low} is more than max_replicas {high}: {high} is used"
            )
    return notes
