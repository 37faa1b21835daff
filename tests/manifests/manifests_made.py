"""Manifests to look at: every part, made as the command makes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sprat.launchers import option_checks
from sprat.launchers.kubernetes.pods import PodOrder, check_reach, pod
from sprat.manifests import controller, parts
from sprat.manifests.plan import Destination, ManifestPlan
from sprat.triggers.install import Entry

Object = dict[str, Any]

PLAN = ManifestPlan(
    namespace="work",
    image="registry.example/app:1",
    pools=("papers", "Under_Score." + "x" * 100),
    ways=(Destination(cidr="10.0.0.0/8", port=5432), Destination(cidr="2001:db8::/32")),
)
TICK = ("python", "-m", "sprat", "triggers", "tick", "nightly", "--wait", "30")
ENTRIES = [
    Entry(name=name, schedule="*/5 * * * *", timezone=zone, command=TICK)
    for name, zone in (("nightly", "UTC"), ("Under_Score", "Europe/Berlin"), ("x" * 100, "UTC"))
]
EVERY_PART = [name for name in parts.NAMES if name != parts.ALL]


def part(name: str, plan: ManifestPlan = PLAN) -> list[Object]:
    """The objects of one part, in their namespace."""
    made = parts.build(plan, [name], ENTRIES)
    items: list[Object] = parts.listed(plan, made)["items"]
    return items


def everything() -> list[Object]:
    return [one for name in EVERY_PART for one in part(name)]


def shown(one: Object) -> str:
    return f"{one['kind']}/{one['metadata']['name']}"


def pods(one: Object) -> Iterator[Object]:
    """The pod templates in an object, wherever they are."""
    if isinstance(one, dict):
        if "containers" in one.get("spec", {}):
            yield one
        for inner in one.values():
            yield from pods(inner)


def launched() -> Object:
    """A worker's pod as the launcher makes it from the controller's configuration."""
    made = controller.configuration(PLAN)
    options = option_checks.options(made["launcher"], made["launcher_options"])
    url = made["orchestrator_url"]
    order = PodOrder(
        url=url, pool="papers", options=options, namespace="work", mark="m", has_key=True
    )
    check_reach(order)
    return pod(order, "w-1")
