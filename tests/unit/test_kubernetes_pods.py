"""Names, and the pod that a template and the options become."""

from __future__ import annotations

from typing import Any

import pytest

from sprat.core.errors import InvalidInput
from sprat.launchers import option_checks
from sprat.launchers.kubernetes.jobs import job
from sprat.launchers.kubernetes.names import has_password, label_of, name_of, store_mark
from sprat.launchers.kubernetes.options import LABEL_VALUE, NAME
from sprat.launchers.kubernetes.pods import PodOrder, check_reach, pod

URL = "http://10.0.0.1:8080"


def order(url: str = URL, *, has_key: bool = False, **given: object) -> PodOrder:
    options = option_checks.options("kubernetes", {"image": "papers:1", **given})
    return PodOrder(
        url=url, pool="papers", options=options, namespace="here", mark="12345678", has_key=has_key
    )


def made(**given: object) -> dict[str, Any]:
    return pod(order(**given), "w-1")


def worker(**given: object) -> dict[str, Any]:
    containers = made(**given)["spec"]["containers"]
    return next(one for one in containers if "--launched" in one.get("command", []))


@pytest.mark.parametrize(
    "worker_id", ["w-01a1e2af375a76338d04c23635a2", "W 1", "ä", "a" * 128, "-", "w.1", "x/y"]
)
def test_every_worker_has_a_name_that_kubernetes_takes(worker_id: str) -> None:
    name = name_of(worker_id)
    assert NAME.fullmatch(name)
    assert "." not in name
    assert len(name) <= 52
    assert LABEL_VALUE.fullmatch(name)


def test_different_workers_have_different_names() -> None:
    ids = ["w-1", "W-1", "w.1", "w 1", "w_1", "a" * 127, "a" * 128]
    assert len({name_of(worker_id) for worker_id in ids}) == len(ids)
    assert name_of("w-1") == "sprat-w-1"


@pytest.mark.parametrize("pool", ["papers", "a.b_c-d", "x" * 128, "-x-", "_"])
def test_every_pool_has_a_label(pool: str) -> None:
    assert LABEL_VALUE.fullmatch(label_of(pool))


def test_password_leaves_no_trace_in_the_mark_of_a_store() -> None:
    marks = {store_mark(f"postgresql://u:{word}@h/db?password={word}") for word in ("a", "b")}
    assert len(marks) == 1
    assert store_mark("redis://h?store=a") != store_mark("redis://h?store=b")


@pytest.mark.parametrize(
    ("url", "has"),
    [
        ("postgresql://u:p@h/db", True),
        ("redis://:p@h", True),
        ("postgresql://h/db?password=p", True),
        ("redis+sentinel://a,b/m?sentinel_password=p", True),
        ("postgresql://u@h/db", False),
        ("https://h", False),
    ],
)
def test_passwords_are_seen(url: str, has: bool) -> None:
    assert has_password(url) is has


def test_pod_is_the_reserved_worker() -> None:
    found = made()
    assert found["metadata"]["name"] == "sprat-w-1"
    assert found["metadata"]["namespace"] == "here"
    assert found["metadata"]["labels"]["sprat/pool"] == "papers"
    assert found["metadata"]["labels"]["sprat/worker"] == "sprat-w-1"
    command = ["sprat", "work", "papers", "--worker-id", "w-1", "--launched"]
    assert worker()["command"] == command
    env = {one["name"]: one.get("value") for one in worker()["env"]}
    assert env["SPRAT_URL"] == URL
    assert env["SPRAT_PLACE"] == "12345678/here/$(SPRAT_POD)"
    assert found["spec"]["restartPolicy"] == "Never"
    assert found["spec"]["terminationGracePeriodSeconds"] == 3600


def test_pod_has_no_rights_that_it_does_not_need() -> None:
    spec = made()["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert worker()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
    }


def test_options_reach_the_pod() -> None:
    given = {
        "cpu": 0.5,
        "memory": "1Gi",
        "memory_limit": "2Gi",
        "host_network": True,
        "image_pull_policy": "Never",
        "labels": {"team": "a"},
        "node_selector": {"disk": "fast"},
        "grace_seconds": 10,
        "service_account": "worker",
    }
    found = made(**given)
    assert worker(**given)["resources"] == {
        "requests": {"cpu": "0.5", "memory": "1Gi"},
        "limits": {"memory": "2Gi"},
    }
    assert worker(**given)["imagePullPolicy"] == "Never"
    spec = found["spec"]
    assert (spec["hostNetwork"], spec["nodeSelector"]) == (True, {"disk": "fast"})
    assert spec["terminationGracePeriodSeconds"] == 10
    assert (spec["serviceAccountName"], spec["automountServiceAccountToken"]) == ("worker", True)
    assert found["metadata"]["labels"]["team"] == "a"


def test_secret_becomes_environment_and_the_url_stays_out() -> None:
    found = pod(order("postgresql://u:hidden@h/db", secret="store"), "w-1")
    assert "hidden" not in str(found)
    container = found["spec"]["containers"][0]
    assert container["envFrom"] == [{"secretRef": {"name": "store"}}]
    (url,) = [one for one in container["env"] if one["name"] == "SPRAT_URL"]
    assert url["valueFrom"] == {"secretKeyRef": {"name": "store", "key": "SPRAT_URL"}}


TEMPLATE = {
    "metadata": {"labels": {"team": "a", "sprat/pool": "another"}, "annotations": {"n": "1"}},
    "spec": {
        "restartPolicy": "Always",
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": False},
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [
            {"name": "proxy", "image": "proxy:1", "command": ["proxy"]},
            {
                "name": "worker",
                "image": "other:1",
                "args": ["x"],
                "env": [{"name": "SPRAT_URL", "value": "x"}, {"name": "MINE", "value": "1"}],
                "volumeMounts": [{"name": "data", "mountPath": "/data"}],
                "resources": {"limits": {"cpu": "1", "memory": "1Gi"}},
            },
        ],
    },
}


def test_template_stays_except_for_what_makes_the_pod_this_worker() -> None:
    found = made(template=TEMPLATE, memory_limit="2Gi")
    metadata, spec = found["metadata"], found["spec"]
    assert metadata["labels"]["sprat/pool"] == "papers"
    assert (metadata["labels"]["team"], metadata["annotations"]) == ("a", {"n": "1"})
    assert spec["restartPolicy"] == "Never"
    assert spec["securityContext"] == {
        "runAsNonRoot": False,
        "runAsUser": 1000,
        "seccompProfile": {"type": "RuntimeDefault"},
    }
    proxy, ours = spec["containers"]
    assert proxy == TEMPLATE["spec"]["containers"][0]
    assert (ours["image"], "args" in ours) == ("papers:1", False)
    assert ours["volumeMounts"] == [{"name": "data", "mountPath": "/data"}]
    assert ours["resources"]["limits"] == {"cpu": "1", "memory": "2Gi"}
    env = [(one["name"], one.get("value")) for one in ours["env"]]
    assert env[0] == ("MINE", "1")
    assert ("SPRAT_URL", URL) in env
    assert [name for name, _ in env].count("SPRAT_URL") == 1


def test_first_container_is_ours_when_none_is_named_so() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "mine"}]}}
    found = worker(template=template)
    assert found["name"] == "main"


def test_hook_signals_only_a_process_that_is_the_first_of_its_pod() -> None:
    assert "preStop" in worker()["lifecycle"]
    assert "lifecycle" not in worker(template={"spec": {"shareProcessNamespace": True}})
    own = {"spec": {"containers": [{"lifecycle": {"preStop": {"exec": {"command": ["x"]}}}}]}}
    assert worker(template=own)["lifecycle"]["preStop"] == {"exec": {"command": ["x"]}}


@pytest.mark.parametrize(("grace", "wait"), [(3600, 3590), (12, 6), (1, 1), (0, 0)])
def test_hook_leaves_time_to_hand_the_job_back(grace: int, wait: int) -> None:
    hook = worker(grace_seconds=grace)["lifecycle"]["preStop"]["exec"]["command"]
    assert f"kill -TERM 1 && sleep {wait} && kill -TERM 1;" in hook[-1]
    template = {"spec": {"terminationGracePeriodSeconds": grace}}
    assert worker(template=template)["lifecycle"]["preStop"]["exec"]["command"] == hook


def test_job_is_tried_once_and_cleared_away() -> None:
    found = job(order(ttl_seconds=30), "w-1")
    assert found["metadata"]["name"] == "sprat-w-1"
    assert (found["spec"]["backoffLimit"], found["spec"]["ttlSecondsAfterFinished"]) == (0, 30)
    template = found["spec"]["template"]
    assert template["metadata"]["labels"]["sprat/worker"] == "sprat-w-1"
    assert template["spec"] == made()["spec"] | {
        "containers": template["spec"]["containers"],
    }


UNREACHABLE = {
    "password": (order("postgresql://u:p@h/db"), "holds a password, and that does not go into"),
    "key": (order("https://h", has_key=True), "SPRAT_API_KEY is set, and that does not go into"),
    "file": (order("sqlite:////fleet.db"), "a pod cannot open a file of this machine"),
    "loopback": (order("http://127.0.0.1:80/x"), "127.0.0.1:80 is another place inside a pod"),
}


@pytest.mark.parametrize(("wrong", "why"), UNREACHABLE.values(), ids=list(UNREACHABLE))
def test_what_a_pod_cannot_reach_or_must_not_show_is_refused(wrong: PodOrder, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        check_reach(wrong)
    check_reach(wrong.replace(options=wrong.options.replace(secret="store")))


def test_loopback_is_the_machine_for_pods_in_its_network() -> None:
    check_reach(order("http://127.0.0.1:80", host_network=True))
    check_reach(order("http://127.0.0.1:80", template={"spec": {"hostNetwork": True}}))
