"""What the pages show is what is printed."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml
from manifests_made import part

from sprat.manifests import network, parts, secrets
from sprat.manifests.plan import ManifestPlan

PAGES = Path(__file__).parents[2] / "docs" / "operate"
MANIFESTS = (PAGES / "kubernetes-manifests.md").read_text()
SCALERS = (PAGES / "kubernetes-scalers.md").read_text()
PLAN = ManifestPlan(image="registry.example/app:1", pools=("papers",))


def shown() -> list[dict[str, Any]]:
    blocks = re.findall(r"^```yaml\n(.*?)^```", SCALERS, re.MULTILINE | re.DOTALL)
    return [one for block in blocks for one in yaml.safe_load_all(block)]


def printed(kind: str, name: str) -> dict[str, Any]:
    [found] = [one for one in part(name, PLAN) if one["kind"] == kind]
    return found


def test_kedas_objects_are_shown_as_they_are_printed() -> None:
    found = {one["kind"]: one for one in shown() if "kind" in one}
    assert set(found) == {"TriggerAuthentication", "ScaledObject"}
    for kind, one in found.items():
        made = printed(kind, "keda")
        assert one["spec"] == made["spec"]
        assert one["metadata"]["name"] == made["metadata"]["name"]


def test_the_metric_is_shown_as_it_is_printed() -> None:
    [metrics] = [one["metrics"] for one in shown() if "metrics" in one]
    assert metrics == printed("HorizontalPodAutoscaler", "hpa")["spec"]["metrics"]
    [rules] = [one["externalRules"] for one in shown() if "externalRules" in one]
    assert rules[0]["seriesQuery"] == metrics[0]["external"]["metric"]["name"]


def test_every_part_is_in_the_table() -> None:
    table = "".join(re.findall(r"^\| (`.*?) \|", MANIFESTS, re.MULTILINE))
    assert {name for name in parts.NAMES if f"`{name}`" in table} == set(parts.NAMES)


def test_the_commands_that_make_secrets_are_those_of_the_output() -> None:
    made = parts.build(PLAN, ["orchestrator", "controller"])
    every = [one for objects in made.values() for one in objects]
    advice = secrets.advice(PLAN, every, has_workers=True)
    commands = "".join(line.removeprefix("#   ") for line in advice.splitlines(True)[1:])
    assert f"```\n{commands}```" in MANIFESTS


def test_the_label_of_clients_is_the_one_that_counts() -> None:
    [(key, value)] = network.CLIENT.items()
    assert f"sprat/client={value}" in MANIFESTS
    assert key == "sprat/client"
