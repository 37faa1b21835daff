"""A pod template as a person writes it: what it may be, and which of its containers is ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sprat.core import fields
from sprat.core.errors import InvalidInput

OURS = "worker"  # the container of this name, or else the first, is the worker
KEYS = ("apiVersion", "kind", "metadata", "spec")
KINDS = ("Pod", "PodTemplate")
MAPPING = fields.mapping("(key: value)")


def check(value: object, name: str) -> None:
    """A mapping with `spec` and `metadata`, as under `template:` of a Deployment, or a Pod."""
    top = MAPPING(value, name)
    if top.get("kind", "Pod") not in KINDS:
        raise InvalidInput(f"{name} must be a pod or a pod template, not a {top['kind']}")
    for key in top:
        if key not in KEYS:
            raise InvalidInput(f"{name} has `metadata` and `spec`, not {key!r}")
    metadata = MAPPING(top.get("metadata", {}), f"{name}.metadata")
    for part in ("labels", "annotations"):
        MAPPING(metadata.get(part, {}), f"{name}.metadata.{part}")
    spec = MAPPING(top.get("spec", {}), f"{name}.spec")
    MAPPING(spec.get("securityContext", {}), f"{name}.spec.securityContext")
    containers = spec.get("containers", [])
    if not isinstance(containers, list):
        raise InvalidInput(f"{name}.spec.containers must be a list, not {containers!r}")
    for place, container in enumerate(containers):
        _container(container, f"{name}.spec.containers[{place}]")


def worker_of(template: Mapping[str, Any]) -> int | None:
    """Which of its containers is the worker; None when it has none yet."""
    containers = template.get("spec", {}).get("containers", [])
    named = [place for place, one in enumerate(containers) if one.get("name") == OURS]
    return named[0] if named else 0 if containers else None


def image(template: Mapping[str, Any]) -> str:
    place = worker_of(template)
    return "" if place is None else str(template["spec"]["containers"][place].get("image", ""))


def _container(value: object, name: str) -> None:
    container = MAPPING(value, name)
    for part in ("securityContext", "resources"):
        MAPPING(container.get(part, {}), f"{name}.{part}")
    env = container.get("env", [])
    if not isinstance(env, list) or not all(isinstance(one, dict) for one in env):
        raise InvalidInput(f"{name}.env must be a list of `name` and `value`")
