"""The parts by name, and the manifests as one document, as a stream, or as a directory for
kustomize.

In a stream every object names its namespace. In a directory only kustomization.yaml does, so that
an overlay can choose another one: kustomize puts it in, also where a role binding needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sprat.core.errors import InvalidInput
from sprat.manifests import (
    controller,
    hpa,
    keda,
    network,
    orchestrator,
    rbac,
    secrets,
    triggers,
    yaml_text,
)
from sprat.manifests.plan import ManifestPlan
from sprat.triggers.install import Entry

ALL = "all"
TRIGGERS = "triggers"
# All but TRIGGERS, which needs to know them.
OBJECTS: dict[str, Callable[[ManifestPlan], list[dict[str, Any]]]] = {
    "rbac": rbac.objects,
    "orchestrator": orchestrator.objects,
    "controller": controller.objects,
    "network": network.objects,
    "keda": keda.objects,
    "keda-jobs": keda.jobs,
    "hpa": hpa.objects,
}
TOGETHER = ("rbac", "orchestrator", "controller", "network", TRIGGERS)  # what ALL stands for
SCALERS = ("keda", "keda-jobs", "hpa")  # instead of the controller, and of one another
WITHOUT_IMAGE = ("rbac", "network")
NAMES = (*TOGETHER, *SCALERS, ALL)
KUSTOMIZATION = "kustomization.yaml"
HEADER = "# Made by `sprat manifests`. Made again it is overwritten: keep changes in an overlay.\n"

Parts = dict[str, list[dict[str, "Any"]]]


def chosen(names: Sequence[str]) -> list[str]:
    """The parts that are meant, in our order, or InvalidInput."""
    wanted = set(names)
    if ALL in wanted:
        wanted = wanted - {ALL} | set(TOGETHER)
    several = sorted(wanted & {*SCALERS, "controller"})
    if len(several) > 1:
        raise InvalidInput(
            f"{' and '.join(several)} would scale the same workers against one another: "
            f"name the parts that you want, with one of these"
        )
    return [name for name in NAMES if name in wanted]


def build(plan: ManifestPlan, names: Sequence[str], entries: Sequence[Entry] = ()) -> Parts:
    """The objects of each part. Without cron triggers there is no such part."""
    made: Parts = {}
    for name in names:
        if not plan.image and name not in WITHOUT_IMAGE:
            raise InvalidInput("--image is missing: the name of an image with sprat in it")
        if name != TRIGGERS:
            made[name] = OBJECTS[name](plan)
        elif entries:
            made[name] = triggers.objects(plan, entries)
    return made


def listed(plan: ManifestPlan, parts: Parts) -> dict[str, Any]:
    """One document, for `kubectl apply -f -`."""
    items = [_placed(one, plan.namespace) for objects in parts.values() for one in objects]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def stream(plan: ManifestPlan, parts: Parts) -> str:
    """The same as YAML, for people."""
    return _advice(plan, parts) + yaml_text.documents(listed(plan, parts)["items"])


def files(plan: ManifestPlan, parts: Parts) -> dict[str, str]:
    """A directory: its files by name."""
    made = {
        f"{name}.yaml": HEADER + yaml_text.documents(objects) for name, objects in parts.items()
    }
    kustomization = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "namespace": plan.namespace,
        "resources": list(made),
    }
    text = HEADER + _advice(plan, parts) + yaml_text.document(kustomization)
    return {KUSTOMIZATION: text, **made}


def _advice(plan: ManifestPlan, parts: Parts) -> str:
    every = [one for objects in parts.values() for one in objects]
    has_workers = not parts.keys().isdisjoint(("controller", *SCALERS))
    return secrets.advice(plan, every, has_workers=has_workers)


def _placed(one: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    about = one["metadata"]
    placed = {"name": about["name"], "namespace": namespace, **about}
    made = {key: placed if key == "metadata" else value for key, value in one.items()}
    if "subjects" in one:
        made["subjects"] = [{**subject, "namespace": namespace} for subject in one["subjects"]]
    return made
