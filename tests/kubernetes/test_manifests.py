"""The real API server takes what `sprat manifests` prints, and drops nothing of it."""

from __future__ import annotations

from typing import Any

import pytest
from clusters import IMAGE, Cluster, as_known
from systems import POOL, System

NEWER = {"batch/v1 CronJob.spec.timeZone"}  # a server of 1.20 does not know it
OF_KEDA = {"ScaledJob", "ScaledObject", "TriggerAuthentication"}
PARTS = ("all", "keda", "keda-jobs", "hpa")
TRIGGERS = """
pools:
  papers: {command: ["true"]}
triggers:
  - {name: nightly, type: cron, schedule: "0 3 * * *", pool: papers}
"""


@pytest.fixture
def manifests(system: System) -> list[dict[str, Any]]:
    """Every part that there is, with a trigger."""
    (system.place / "sprat.yml").write_text(TRIGGERS)
    system.run("apply", "sprat.yml")
    about = ("--image", IMAGE, "--pool", POOL, "--egress", "10.0.0.0/8:443")
    return [one for part in PARTS for one in system.manifests(part, *about)]


def lost(sent: Any, answer: Any, path: str = "") -> list[str]:
    """What was sent and is not in the answer. (More may be: what the server fills in.)"""
    if not sent:
        return [path] if answer else []  # what is empty may be left out
    if isinstance(sent, dict) and isinstance(answer, dict):
        return [gone for key in sent for gone in lost(sent[key], answer.get(key), f"{path}.{key}")]
    if isinstance(sent, list) and isinstance(answer, list) and len(sent) == len(answer):
        pairs = enumerate(zip(sent, answer, strict=True))
        return [gone for place, pair in pairs for gone in lost(*pair, f"{path}[{place}]")]
    return [] if sent == answer else [path]


def test_server_accepts_every_manifest_and_drops_nothing_it_knows(
    cluster: Cluster, manifests: list[dict[str, Any]]
) -> None:
    known = [one for one in manifests if one["kind"] not in OF_KEDA]
    assert len(known) > len(manifests) / 2
    dropped = {
        f"{one['apiVersion']} {one['kind']}{field}"
        for one in known
        for field in lost(as_known(one), cluster.create(one, dry_run=True))
    }
    assert dropped == NEWER
