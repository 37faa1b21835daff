"""`sprat manifests`: what it prints and writes, what it refuses, and what kustomize makes of it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from sprat.cli.main import main
from sprat.config.trigger import Trigger
from sprat.controller import configuration
from sprat.store.open_store import open_store
from sprat.triggers import registry

COMMON = ("--image", "registry.example/app:1", "--pool", "papers")
SPRAT_YML = """\
pools:
  papers:
    command: ["true"]
triggers:
  - name: nightly
    type: cron
    schedule: "0 3 * * *"
    pool: papers
"""


@pytest.fixture(autouse=True)
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty directory, and no store."""
    monkeypatch.delenv("SPRAT_URL", raising=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


class Done(NamedTuple):
    returncode: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Done:
    """The command, in this process: it opens nothing that would stay."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(["manifests", *arguments])
    return Done(code, out.getvalue(), err.getvalue())


def run_apart(*arguments: str, **env: str) -> str:
    return subprocess.check_output(
        [sys.executable, "-m", "sprat", "manifests", *arguments],
        env={**os.environ, **env},
        text=True,
        timeout=100,
    )


def kinds(text: str) -> list[str]:
    return [one["kind"] for one in yaml.safe_load_all(text)]


def test_the_same_is_printed_every_time_as_yaml_and_as_json() -> None:
    first = run("all", *COMMON)
    assert (first.returncode, first.stderr) == (0, "")
    for seed in ("1", "7"):
        assert run_apart("all", *COMMON, PYTHONHASHSEED=seed) == first.stdout
    assert run(*COMMON).stdout == first.stdout
    listed = json.loads(run("all", *COMMON, "--json").stdout)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    assert listed["items"] == list(yaml.safe_load_all(first.stdout))
    assert {one["metadata"]["namespace"] for one in listed["items"]} == {"sprat"}


def test_parts_are_printed_in_our_order_once() -> None:
    text = run("network", "rbac", "network").stdout
    assert kinds(text) == kinds(run("rbac").stdout) + kinds(run("network").stdout)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "--image is missing"),
        (("--image", "app"), "--pool is missing"),
        (("keda", "--image", "app"), "--pool is missing"),
        (("rbac", "--namespace", "Work"), "a namespace has"),
        (("rbac", "--namespace", "a" * 64), "a namespace has"),
        (("rbac", "--namespace=-a"), "a namespace has"),
        (("rbac", "--namespace", "a\n"), "a namespace has"),
        (("rbac", "--namespace", ""), "a namespace has"),
        (("rbac", "--secret", "a/b"), "a Secret's name has"),
        (("orchestrator", "--image", "App"), "cannot be an image"),
        (("orchestrator", "--image", "app:"), "cannot be an image"),
        (("orchestrator", "--image", "app:1 "), "cannot be an image"),
        (("orchestrator", "--image", "app@sha256:12"), "cannot be an image"),
        (("orchestrator", "--image", "https://registry.example/app"), "cannot be an image"),
        (("controller", "--image", "app", "--pool", "a b"), "pool name"),
        (("network", "--egress", "10.0.0.1/8"), "names no addresses"),
        (("network", "--egress", "10.0.0.0/8:0"), "names no addresses"),
        (("network", "--egress", "example.org:443"), "names no addresses"),
        (("triggers", "--image", "app"), "there is no cron trigger"),
        (("all", "keda", *COMMON), "against one another"),
        (("keda", "hpa", *COMMON), "against one another"),
        (("rbac", "--max-workers", "0"), "whole number from 1"),
        (("rback",), "invalid choice"),
    ],
)
def test_what_kubernetes_would_refuse_is_refused_in_one_sentence(
    arguments: tuple[str, ...], said: str
) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "image",
    [
        "app",
        "app:1",
        "library/app",
        "localhost:5000/app:latest",
        "registry.example:5000/team/my_app__x.y-z:v1.2-rc_1",
        "registry.example/app@sha256:" + "0" * 64,
        "registry.example/app:1@sha256:" + "0" * 64,
    ],
)
def test_images_of_every_form_are_taken(image: str) -> None:
    done = run("orchestrator", "--image", image)
    [deployment] = [one for one in yaml.safe_load_all(done.stdout) if one["kind"] == "Deployment"]
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == image


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.0/8", {"to": [{"ipBlock": {"cidr": "10.0.0.0/8"}}]}),
        (
            "10.1.2.3:5432",
            {
                "to": [{"ipBlock": {"cidr": "10.1.2.3/32"}}],
                "ports": [{"protocol": "TCP", "port": 5432}],
            },
        ),
        (
            "[2001:db8::]/32:443",
            {
                "to": [{"ipBlock": {"cidr": "2001:db8::/32"}}],
                "ports": [{"protocol": "TCP", "port": 443}],
            },
        ),
        ("[2001:db8::]/32", {"to": [{"ipBlock": {"cidr": "2001:db8::/32"}}]}),
    ],
)
def test_workers_may_reach_what_was_allowed(text: str, expected: dict[str, Any]) -> None:
    made = list(yaml.safe_load_all(run("network", "--egress", text).stdout))
    [worker] = [one for one in made if one["metadata"]["name"] == "sprat-worker"]
    assert worker["spec"]["egress"][2:] == [expected]


# -- the controller's file ----------------------------------------------------------------------


def configured(*arguments: str) -> tuple[str, dict[str, Any]]:
    """The file in the ConfigMap, and the variables of the controller."""
    done = run("controller", "--image", "app", *arguments)
    assert done.returncode == 0, done.stderr
    made = {one["kind"]: one for one in yaml.safe_load_all(done.stdout)}
    [text] = made["ConfigMap"]["data"].values()
    [box] = made["Deployment"]["spec"]["template"]["spec"]["containers"]
    assert box["command"][2] == "/etc/sprat/worker-controller-config.yaml"
    return text, {one["name"]: one for one in box["env"]}


def test_the_controller_reads_the_file_that_is_made_for_it(place: Path) -> None:
    text, variables = configured("--pool", "papers", "--pool", "other", "--max-workers", "7")
    assert set(variables) == {"SPRAT_API_KEY", "SPRAT_ALLOW_HTTP"}
    (place / "made.yaml").write_text(text)
    told = configuration.load("made.yaml", {})
    assert told.url == "http://sprat-orchestrator:8000"
    assert told.warnings == ()
    assert [one.pool for one in told.scale_sets] == ["papers", "other"]
    for one in told.scale_sets:
        assert one.launcher == "kubernetes"
        assert one.overrides == {"max_replicas": 7}
        assert one.launcher_options is not None
        assert one.launcher_options["image"] == "app"
        assert one.launcher_options["secret"] == "sprat-worker"


def test_another_file_makes_other_pods() -> None:
    notes = []
    for pool in ("papers", "papers", "other"):
        text = run("controller", "--image", "app", "--pool", pool).stdout
        [made] = [one for one in yaml.safe_load_all(text) if one["kind"] == "Deployment"]
        notes.append(made["spec"]["template"]["metadata"]["annotations"])
    assert notes[0] == notes[1] != notes[2]


def test_a_file_of_ones_own_is_taken_as_it_is(place: Path) -> None:
    own = "# ours\npool: papers  # the only one\nlauncher: process\nalgorithm: slo\n"
    (place / "own.yaml").write_text(own)
    text, variables = configured("--config", "own.yaml")
    assert text == own
    assert variables["ORCHESTRATOR_URL"]["value"] == "http://sprat-orchestrator:8000"
    (place / "own.yaml").write_text(f"orchestrator_url: https://far.example\n{own}")
    assert set(configured("--config", "own.yaml")[1]) == {"SPRAT_API_KEY"}
    (place / "own.yaml").write_text(f"orchestrator_url: http://sprat-orchestrator:8000\n{own}")
    assert "SPRAT_ALLOW_HTTP" in configured("--config", "own.yaml")[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("pol: papers\n", "did you mean pool?"),
        ("store: postgresql://me:secret@host/db\n", "has to be in a Secret"),
        ("pool: [\n", "line"),
        (None, "there is no own.yaml"),
    ],
)
def test_a_file_that_cannot_be_used_is_told(place: Path, text: str | None, said: str) -> None:
    if text is not None:
        (place / "own.yaml").write_text(text)
    done = run("controller", "--image", "app", "--config", "own.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert "secret@" not in done.stderr


# -- triggers -----------------------------------------------------------------------------------


def cron_jobs(*arguments: str) -> list[str]:
    done = run("triggers", "--image", "app", *arguments)
    assert done.returncode == 0, done.stderr
    return [one["metadata"]["name"] for one in yaml.safe_load_all(done.stdout)]


def test_cron_jobs_are_those_of_the_file_here_or_of_the_store_that_was_named(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "sprat.yml").write_text(SPRAT_YML)
    assert cron_jobs() == ["sprat-trigger-nightly"]
    assert not (place / "sprat.db").exists()
    url = f"sqlite:///{place}/other.db"
    with open_store(url) as store:
        registry.save(store, Trigger(name="hourly", type="cron", schedule="@hourly"))
        registry.save(store, Trigger(name="hook", type="lambda"))
    assert cron_jobs("--url", url) == ["sprat-trigger-hourly"]
    monkeypatch.setenv("SPRAT_URL", url)
    assert cron_jobs() == ["sprat-trigger-hourly"]


def test_a_store_that_is_not_there_is_told() -> None:
    done = run("triggers", "--image", "app", "--url", "sqlite:///none.db")
    assert done.returncode == 2
    assert "there is no store" in done.stderr


def test_a_store_that_is_here_counts_when_there_is_no_file(place: Path) -> None:
    with open_store(f"sqlite:///{place}/sprat.db") as store:
        registry.save(store, Trigger(name="hourly", type="cron", schedule="@hourly"))
    assert cron_jobs() == ["sprat-trigger-hourly"]
    assert "CronJob" in kinds(run(*COMMON).stdout)


def test_a_cron_job_ticks_with_a_command_that_exists(place: Path) -> None:
    (place / "sprat.yml").write_text(SPRAT_YML)
    [made] = list(yaml.safe_load_all(run("triggers", "--image", "app").stdout))
    [box] = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert box["command"] == ["sprat", "triggers", "tick", "nightly", "--wait", "30"]


# -- a directory --------------------------------------------------------------------------------


def test_a_directory_is_written_again_but_nobody_elses_file(place: Path) -> None:
    done = run(*COMMON, "--output", "base")
    assert done.returncode == 0
    assert "kubectl apply -k base" in done.stderr
    names = ["controller", "kustomization", "network", "orchestrator", "rbac"]
    files = {path.name: path.read_text() for path in (place / "base").iterdir()}
    assert sorted(files) == [f"{name}.yaml" for name in names]
    assert run(*COMMON, "--output", "base").returncode == 0
    assert {path.name: path.read_text() for path in (place / "base").iterdir()} == files
    (place / "base" / "network.yaml").write_text("kind: Mine\n")
    (place / "base" / "mine.yaml").write_text("kind: Mine\n")
    done = run(*COMMON, "--namespace", "other", "--output", "base")
    assert done.returncode == 2
    assert "base/network.yaml is not ours to overwrite" in done.stderr
    assert (place / "base" / "rbac.yaml").read_text() == files["rbac.yaml"]
    assert (place / "base" / "mine.yaml").read_text() == "kind: Mine\n"


def test_what_was_written_is_told_as_json() -> None:
    told = json.loads(run("rbac", "--output", "base", "--json").stdout)
    assert told == {"directory": "base", "files": ["kustomization.yaml", "rbac.yaml"]}


def test_a_directory_that_cannot_be_made_is_told(place: Path) -> None:
    (place / "file").write_text("")
    done = run("rbac", "--output", "file/base")
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1


def test_the_namespace_is_said_once(place: Path) -> None:
    run(*COMMON, "--namespace", "work", "--output", "base")
    for path in (place / "base").iterdir():
        for one in yaml.safe_load_all(path.read_text()):
            assert "namespace" not in one.get("metadata", {})
            if one["kind"] != "Kustomization":
                assert "namespace: work" not in yaml.safe_dump(one)


# -- kustomize ----------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kubectl() -> str:
    found = shutil.which("kubectl")
    if found is None:
        packages = Path(__file__).parents[2] / "tools" / "packages"
        done = subprocess.run([packages, "kubernetes-client"], check=False)
        found = shutil.which("kubectl") if done.returncode == 0 else None
    if found is None and os.environ.get("SPRAT_TEST_REQUIRE_SERVERS"):
        pytest.fail("kubectl is not installed: tools/packages kubernetes-client")
    if found is None:
        pytest.skip("kubectl is not installed: tools/packages kubernetes-client")
    return found


def kustomized(kubectl: str, place: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        [kubectl, "kustomize", str(place)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def test_kustomize_makes_of_the_directory_what_is_printed(kubectl: str, place: Path) -> None:
    (place / "sprat.yml").write_text(SPRAT_YML)
    run(*COMMON, "--namespace", "work", "--output", "base")
    printed = yaml.safe_load_all(run(*COMMON, "--namespace", "work").stdout)
    key = json.dumps
    made = sorted(kustomized(kubectl, place / "base"), key=lambda one: key(one, sort_keys=True))
    assert made == sorted(printed, key=lambda one: key(one, sort_keys=True))


def test_kustomize_can_choose_another_namespace_and_image(kubectl: str, place: Path) -> None:
    run(*COMMON, "--output", "base")
    wanted = place / "base" / "kustomization.yaml"
    changed = wanted.read_text().replace("namespace: sprat\n", "namespace: other\n")
    wanted.write_text(changed + "images:\n- name: registry.example/app\n  newTag: '2'\n")
    made = kustomized(kubectl, place / "base")
    assert {one["metadata"]["namespace"] for one in made} == {"other"}
    [binding] = [one for one in made if one["kind"] == "RoleBinding"]
    assert [one["namespace"] for one in binding["subjects"]] == ["other"]
    deployments = [one for one in made if one["kind"] == "Deployment"]
    images = {one["spec"]["template"]["spec"]["containers"][0]["image"] for one in deployments}
    assert images == {"registry.example/app:2"}
