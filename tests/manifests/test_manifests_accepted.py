"""Kubernetes and KEDA accept what we print: it fits their schemas, and has no other fields."""

from __future__ import annotations

import kubernetes_validate
import pytest
from manifests_made import EVERY_PART, PLAN, Object, everything, launched, part, shown

from sprat.manifests import keda, parts, worker
from sprat.manifests.plan import ManifestPlan

OLDEST, NEWEST = "1.29", kubernetes_validate.latest_version()
KUBERNETES = [one for one in everything() if not one["apiVersion"].startswith("keda.sh/")]
KUBERNETES.append(launched())
KEDA = [one for one in everything() if one["apiVersion"].startswith("keda.sh/")]


@pytest.mark.parametrize("version", [OLDEST, "1.32", NEWEST])
@pytest.mark.parametrize("one", KUBERNETES, ids=shown)
def test_kubernetes_accepts_it(one: Object, version: str) -> None:
    kubernetes_validate.validate(one, version, strict=True)


def test_a_mistake_would_be_found() -> None:
    [deployment] = [one for one in part("orchestrator") if one["kind"] == "Deployment"]
    broken = {**deployment, "spec": {**deployment["spec"], "replica": 2}}
    with pytest.raises(kubernetes_validate.ValidationError, match="replica"):
        kubernetes_validate.validate(broken, OLDEST, strict=True)


@pytest.mark.parametrize("name", EVERY_PART)
def test_no_name_is_there_twice(name: str) -> None:
    names = [shown(one) for one in part(name)]
    assert names
    assert len(set(names)) == len(names)


def test_all_is_what_a_cluster_without_other_scalers_needs() -> None:
    kinds = {one["kind"] for name in parts.chosen(["all"]) for one in part(name)}
    assert kinds == {
        *("Deployment", "Service", "PodDisruptionBudget", "ConfigMap", "CronJob"),
        *("ServiceAccount", "Role", "RoleBinding", "NetworkPolicy"),
    }


# -- what KEDA documents ------------------------------------------------------------------------

# https://keda.sh/docs/latest/reference/scaledobject-spec and scaledjob-spec: fields and their kind
SCALED_OBJECT = {
    "scaleTargetRef": dict,
    "pollingInterval": int,
    "cooldownPeriod": int,
    "initialCooldownPeriod": int,
    "idleReplicaCount": int,
    "minReplicaCount": int,
    "maxReplicaCount": int,
    "fallback": dict,
    "advanced": dict,
    "triggers": list,
}
SCALED_JOB = {
    "jobTargetRef": dict,
    "pollingInterval": int,
    "successfulJobsHistoryLimit": int,
    "failedJobsHistoryLimit": int,
    "envSourceContainerName": str,
    "minReplicaCount": int,
    "maxReplicaCount": int,
    "rollout": dict,
    "scalingStrategy": dict,
    "triggers": list,
}
AUTHENTICATION = {"secretTargetRef": list}
SPECS = {
    "ScaledObject": SCALED_OBJECT,
    "ScaledJob": SCALED_JOB,
    "TriggerAuthentication": AUTHENTICATION,
}
# https://keda.sh/docs/latest/scalers/metrics-api: all of them texts
METRICS_API = {
    *("url", "format", "valueLocation", "targetValue", "activationTargetValue", "unsafeSsl"),
    *("timeout", "aggregateFromKubeServiceEndpoints", "aggregationType", "authMode", "method"),
    "keyParamName",
}


@pytest.mark.parametrize("one", KEDA, ids=shown)
def test_keda_knows_every_field(one: Object) -> None:
    fields = SPECS[one["kind"]]
    for name, value in one["spec"].items():
        assert isinstance(value, fields[name]), name
    for trigger in one["spec"].get("triggers", []):
        assert trigger.keys() <= {"type", "metadata", "authenticationRef", "metricType", "name"}
        assert trigger["metadata"].keys() <= METRICS_API
        assert all(isinstance(value, str) for value in trigger["metadata"].values())


def of_kind(kind: str, name: str) -> Object:
    [found] = [one for one in KEDA if one["kind"] == kind and one["metadata"]["name"] == name]
    return found


@pytest.mark.parametrize("kind", ["ScaledObject", "ScaledJob"])
def test_keda_asks_the_orchestrator_with_a_key_of_the_secret(kind: str) -> None:
    [trigger] = of_kind(kind, "sprat-worker-papers")["spec"]["triggers"]
    assert trigger["type"] == "metrics-api"
    assert trigger["metadata"]["authMode"] == "bearer"
    url = "http://sprat-orchestrator.work.svc:8000/api/v1/pools/papers/desired"
    assert trigger["metadata"]["url"] == url
    by = next(one for one in KEDA if shown(one) == f"TriggerAuthentication/{keda.AUTHENTICATION}")
    assert trigger["authenticationRef"] == {"name": by["metadata"]["name"]}
    key = {"parameter": "token", "name": "sprat", "key": "viewer-key"}
    assert by["spec"]["secretTargetRef"] == [key]


def test_what_is_scaled_is_there() -> None:
    for name in ("keda", "hpa"):
        deployments = {one["metadata"]["name"] for one in part(name) if one["kind"] == "Deployment"}
        targets = {one["spec"]["scaleTargetRef"]["name"] for one in part(name) if is_scaler(one)}
        assert targets == deployments
        assert len(targets) == 2


def is_scaler(one: Object) -> bool:
    return one["kind"] in ("ScaledObject", "HorizontalPodAutoscaler")


def test_a_jobs_pod_and_behaviour_are_those_that_kubernetes_accepts() -> None:
    """KEDA hands on the parts that are Kubernetes' own, so these have a schema."""
    job = of_kind("ScaledJob", "sprat-worker-papers")["spec"]["jobTargetRef"]
    about = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "one"}}
    scaled = of_kind("ScaledObject", "sprat-worker-papers")["spec"]
    behaviour = scaled["advanced"]["horizontalPodAutoscalerConfig"]["behavior"]
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "one"},
        "spec": {
            "scaleTargetRef": {"kind": "Deployment", **scaled["scaleTargetRef"]},
            "maxReplicas": scaled["maxReplicaCount"],
            "behavior": behaviour,
        },
    }
    for version in (OLDEST, NEWEST):
        kubernetes_validate.validate({**about, "spec": job}, version, strict=True)
        kubernetes_validate.validate(autoscaler, version, strict=True)


def test_workers_that_are_scaled_stay_and_those_of_jobs_leave() -> None:
    [stays] = [one for one in part("hpa") if shown(one) == "Deployment/sprat-worker-papers"]
    leaves = of_kind("ScaledJob", "sprat-worker-papers")["spec"]["jobTargetRef"]
    for one, idle in ((stays["spec"], worker.STAY_SECONDS), (leaves, keda.IDLE_SECONDS)):
        [container] = one["template"]["spec"]["containers"]
        words = ["sprat", "work", "papers", "--max-jobs", "0", "--idle", str(idle)]
        assert container["command"] == words
    assert "replicas" not in stays["spec"]


def test_pools_with_names_that_kubernetes_does_not_take_get_others() -> None:
    plan = PLAN.replace(pools=("a", "A", "a_b", "a.b", "a-b", "-", "x" * 128))
    names = [one["metadata"]["name"] for one in part("keda-jobs", plan)]
    assert len(set(names)) == 8
    for one in part("keda-jobs", ManifestPlan(image="app", pools=("A",))):
        kubernetes_validate.validate(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": one["metadata"]}, OLDEST
        )
