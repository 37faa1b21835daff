"""Nobody gets more rights than needed, and no secret is printed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from manifests_made import ENTRIES, PLAN, Object, everything, launched, part, pods, shown

from sprat.cli.completion import parser_of
from sprat.launchers.kubernetes import rbac
from sprat.manifests import orchestrator, parts, triggers
from sprat.manifests.controller import configuration
from sprat.server.options import Options
from sprat.triggers import install

TEMPLATES = [(shown(one), pod) for one in everything() for pod in pods(one)]
LAUNCHED = launched()
TEMPLATES.append(("launched", LAUNCHED))
CONTAINERS = [(name, box) for name, pod in TEMPLATES for box in pod["spec"]["containers"]]

# Where it is said, and what must be said there.
OF_A_POD: dict[str, Any] = {
    "securityContext.runAsNonRoot": True,
    "securityContext.runAsUser": 1000,
    "securityContext.seccompProfile.type": "RuntimeDefault",
    "enableServiceLinks": False,
    "hostNetwork": None,
    "hostPID": None,
    "hostIPC": None,
}
OF_A_CONTAINER: dict[str, Any] = {
    "securityContext.allowPrivilegeEscalation": False,
    "securityContext.capabilities.drop": ["ALL"],
    "securityContext.capabilities.add": None,
    "securityContext.readOnlyRootFilesystem": True,
    "securityContext.privileged": None,
}


def said(thing: Any, path: str) -> Any:
    for key in path.split("."):
        thing = thing.get(key) if isinstance(thing, dict) else None
    return thing


def test_there_is_a_pod_for_every_component() -> None:
    components = {
        pod["metadata"]["labels"]["app.kubernetes.io/component"]
        for _, pod in TEMPLATES
        if pod is not LAUNCHED
    }
    assert components == {"orchestrator", "controller", "trigger", "worker"}


@pytest.mark.parametrize("path", OF_A_POD)
@pytest.mark.parametrize(("name", "pod"), TEMPLATES, ids=lambda one: str(one)[:40])
def test_every_pod_is_restricted(name: str, pod: Object, path: str) -> None:
    assert said(pod["spec"], path) == OF_A_POD[path]


@pytest.mark.parametrize("path", OF_A_CONTAINER)
@pytest.mark.parametrize(("name", "box"), CONTAINERS, ids=lambda one: str(one)[:40])
def test_every_container_is_restricted(name: str, box: Object, path: str) -> None:
    assert said(box, path) == OF_A_CONTAINER[path]


@pytest.mark.parametrize(("name", "box"), CONTAINERS, ids=lambda one: str(one)[:40])
def test_every_container_asks_for_what_it_needs(name: str, box: Object) -> None:
    assert set(box["resources"]["requests"]) == {"cpu", "memory"}
    assert "cpu" not in box["resources"].get("limits", {})


def test_volumes_are_a_scratch_directory_and_our_configuration() -> None:
    volumes = [one for _, pod in TEMPLATES for one in pod["spec"]["volumes"]]
    kinds = {kind for one in volumes for kind in one if kind != "name"}
    assert kinds == {"emptyDir", "configMap"}


def test_only_what_starts_pods_has_a_token() -> None:
    having = {name for name, pod in TEMPLATES if pod["spec"]["automountServiceAccountToken"]}
    ticks = {shown(one) for one in part("triggers")}
    assert having == {"Deployment/sprat-controller", *ticks}
    accounts = [one for one in everything() if one["kind"] == "ServiceAccount"]
    assert len(accounts) == 3
    assert not any(one["automountServiceAccountToken"] for one in accounts)


def test_installed_triggers_have_no_token_at_all() -> None:
    url = "postgresql://user:secret@host/db"
    for one in triggers.of_store(PLAN, ENTRIES, url):
        [pod] = list(pods(one))
        assert pod["spec"]["automountServiceAccountToken"] is False
        assert one["metadata"]["labels"]["sprat/store"] == install.mark(url)
        assert "secret@" not in json.dumps(one)


# -- rights -------------------------------------------------------------------------------------


def test_rights_are_few_and_within_the_namespace() -> None:
    objects = part("rbac")
    assert {one["kind"] for one in objects} == {"ServiceAccount", "Role", "RoleBinding"}
    assert {one["metadata"]["namespace"] for one in objects} == {"work"}
    [role] = [one for one in objects if one["kind"] == "Role"]
    for rule in role["rules"]:
        assert "*" not in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}
        assert not {"secrets", "configmaps", "serviceaccounts"} & set(rule["resources"])
        assert not {"pods/exec", "pods/attach", "pods/portforward"} & set(rule["resources"])
        assert not {"escalate", "bind", "impersonate"} & set(rule["verbs"])


def test_the_role_is_what_the_launcher_needs_in_the_mode_that_is_configured() -> None:
    [role] = [one for one in part("rbac") if one["kind"] == "Role"]
    mode = configuration(PLAN)["launcher_options"]["mode"]
    assert role["rules"] == rbac.rules(mode)
    assert role["rules"] == [
        {"apiGroups": [""], "resources": ["pods"], "verbs": ["create", "delete", "list"]}
    ]


def test_no_kind_is_of_the_whole_cluster() -> None:
    kinds = {one["kind"] for one in everything()}
    assert not any(kind.startswith("Cluster") for kind in kinds)
    assert not kinds & {"Namespace", "CustomResourceDefinition", "PersistentVolume", "Secret"}


def test_the_role_is_bound_to_the_controller_alone() -> None:
    [binding] = [one for one in part("rbac") if one["kind"] == "RoleBinding"]
    account = {"kind": "ServiceAccount", "name": "sprat-controller", "namespace": "work"}
    assert binding["subjects"] == [account]
    assert binding["roleRef"]["kind"] == "Role"
    assert binding["roleRef"]["name"] == "sprat-controller"


# -- secrets ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*parts.TOGETHER, *parts.SCALERS])
def test_values_of_secrets_are_referred_to(name: str) -> None:
    for one in part(name):
        for pod in pods(one):
            for box in pod["spec"]["containers"]:
                plain = {env["name"] for env in box["env"] if "value" in env}
                assert plain <= {"SPRAT_DIRECTORY", "SPRAT_ALLOW_HTTP"}


def test_the_advice_names_every_key_that_is_referred_to() -> None:
    made = parts.build(PLAN, ["orchestrator", "controller", "keda-jobs"], ENTRIES)
    text = parts.stream(PLAN, made)
    advice = text.partition("apiVersion")[0]
    assert all(line.startswith("#") for line in advice.splitlines())
    keys = set(re.findall(r"--from-literal=([A-Za-z_-]+)=", advice))
    assert keys == {"url", "controller-key", "viewer-key", "SPRAT_URL", "SPRAT_API_KEY"}
    assert parts.stream(PLAN, parts.build(PLAN, ["network"])).startswith("apiVersion")


# -- the orchestrator ---------------------------------------------------------------------------


def deployment() -> Object:
    [found] = [one for one in part("orchestrator") if one["kind"] == "Deployment"]
    return found


def test_the_grace_is_longer_than_the_servers_own_goodbye() -> None:
    pod = deployment()["spec"]["template"]["spec"]
    [box] = pod["containers"]
    linger = int(box["command"][box["command"].index("--linger") + 1])
    needed = linger + Options().shutdown_seconds
    assert needed < pod["terminationGracePeriodSeconds"]
    assert linger == orchestrator.LINGER_SECONDS >= 5  # for the cluster to learn that it leaves


def test_probes_ask_what_needs_no_key() -> None:
    [box] = deployment()["spec"]["template"]["spec"]["containers"]
    assert box["livenessProbe"]["httpGet"]["path"] == "/healthz"
    assert box["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert box["startupProbe"]["httpGet"]["path"] == "/healthz"


@pytest.mark.parametrize("name", ["orchestrator", "controller"])
def test_a_drained_node_leaves_one_that_answers(name: str) -> None:
    [made] = [one["spec"] for one in part(name) if one["kind"] == "Deployment"]
    [budget] = [one["spec"] for one in part(name) if one["kind"] == "PodDisruptionBudget"]
    assert 0 < budget["maxUnavailable"] < made["replicas"]
    assert budget["selector"] == made["selector"]
    [spread] = made["template"]["spec"]["topologySpreadConstraints"]
    assert spread["labelSelector"] == made["selector"]


def test_an_update_takes_no_server_away_before_another_is_ready() -> None:
    assert deployment()["spec"]["strategy"]["rollingUpdate"]["maxUnavailable"] == 0


@pytest.mark.parametrize(("name", "box"), CONTAINERS, ids=lambda one: str(one)[:40])
def test_commands_can_be_typed(name: str, box: Object) -> None:
    program, command, *words = box["command"]
    assert program == "sprat"
    parser = parser_of(command)
    assert parser is not None
    assert parser.parse_args(words)


# -- the network --------------------------------------------------------------------------------


def policy(component: str) -> Object:
    [found] = [one for one in part("network") if one["metadata"]["name"] == f"sprat-{component}"]
    spec: Object = found["spec"]
    return spec


def test_workers_reach_names_the_orchestrator_and_what_was_allowed() -> None:
    worker = policy("worker")
    assert worker["policyTypes"] == ["Ingress", "Egress"]
    assert worker["ingress"] == []
    names, server, database, anything = worker["egress"]
    assert {(one["protocol"], one["port"]) for one in names["ports"]} == {("UDP", 53), ("TCP", 53)}
    assert server["ports"] == [{"protocol": "TCP", "port": 8000}]
    [peer] = server["to"]
    assert peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"] == "orchestrator"
    assert database == {
        "to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}],
        "ports": [{"protocol": "TCP", "port": 5432}],
    }
    assert anything == {"to": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}


def test_the_orchestrator_hears_our_pods_and_those_with_the_label() -> None:
    [rule] = policy("orchestrator")["ingress"]
    assert rule["ports"] == [{"protocol": "TCP", "port": 8000}]
    assert {"namespaceSelector": {"matchLabels": {"sprat/client": "true"}}} in rule["from"]
    assert {"podSelector": {"matchLabels": {"sprat/client": "true"}}} in rule["from"]
    assert len(rule["from"]) == 5
    assert all(peer.get("podSelector") != {} for peer in rule["from"])


def test_every_pod_is_covered_by_a_policy() -> None:
    selectors = [one["spec"]["podSelector"] for one in part("network")]
    for name, pod in TEMPLATES:
        assert any(selects(one, pod["metadata"]["labels"]) for one in selectors), name


def test_the_orchestrator_hears_workers_that_were_launched() -> None:
    [rule] = policy("orchestrator")["ingress"]
    peers = [peer["podSelector"] for peer in rule["from"] if "podSelector" in peer]
    assert any(selects(peer, LAUNCHED["metadata"]["labels"]) for peer in peers)


def selects(selector: Object, labels: dict[str, str]) -> bool:
    equal = selector.get("matchLabels", {}).items() <= labels.items()
    return equal and all(one["key"] in labels for one in selector.get("matchExpressions", []))
