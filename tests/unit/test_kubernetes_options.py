"""What a pool may say about its pods, and the sentence when it may not."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from sprat.config import project_file
from sprat.core.errors import InvalidInput
from sprat.launchers import option_checks
from sprat.launchers.kubernetes import options as kubernetes
from sprat.launchers.kubernetes import rbac

WRONG = {
    "no image": ({}, "it needs an image: set launcher_options.image"),
    "image with blanks": ({"image": "a b"}, "image must be the name of an image"),
    "mode": ({"image": "i", "mode": "pods"}, "mode must be pod or job or deployment, not 'pods'"),
    "namespace": ({"image": "i", "namespace": "Big"}, "namespace must be a Kubernetes name"),
    "cpu": ({"image": "i", "cpu": "fast"}, "cpu must be a quantity such as 2, 500m or 1Gi"),
    "memory": ({"image": "i", "memory": -1}, "memory must be a quantity"),
    "policy": (
        {"image": "i", "image_pull_policy": "always"},
        "image_pull_policy must be Always or IfNotPresent or Never",
    ),
    "labels": ({"image": "i", "labels": {"sprat/pool": "x"}}, "sprat/pool is ours"),
    "label value": ({"image": "i", "labels": {"a": 1}}, "labels.a must be a label's value"),
    "grace": ({"image": "i", "grace_seconds": "long"}, "grace_seconds must be seconds"),
    "unknown": ({"image": "i", "imagepullpolicy": "x"}, "did you mean image_pull_policy?"),
    "deployment without its mode": (
        {"image": "i", "deployment": "d"},
        "deployment is for mode: deployment",
    ),
    "mode without deployment": (
        {"mode": "deployment"},
        "mode: deployment needs the name of one: set launcher_options.deployment",
    ),
    "image of a deployment": (
        {"mode": "deployment", "deployment": "d", "image": "i"},
        "with mode: deployment the Deployment says image, not the pool",
    ),
    "template": (
        {"image": "i", "template": {"kind": "Deployment", "spec": {}}},
        "template must be a pod or a pod template, not a Deployment",
    ),
    "template's containers": (
        {"image": "i", "template": {"spec": {"containers": {"name": "x"}}}},
        "template.spec.containers must be a list",
    ),
}


@pytest.mark.parametrize(("given", "why"), WRONG.values(), ids=list(WRONG))
def test_nonsense_is_refused_in_one_sentence(given: dict[str, object], why: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        option_checks.options("kubernetes", given)
    said = str(caught.value)
    assert said.startswith("the launcher kubernetes: ")
    assert why in said
    assert "\n" not in said


def test_image_may_come_from_the_template() -> None:
    template = {"spec": {"containers": [{"name": "other"}, {"name": "worker", "image": "mine"}]}}
    assert option_checks.options("kubernetes", {"template": template}).template == template


FILE = """\
pools:
  papers:
    handler: papers:analyze
    launcher: kubernetes
    launcher_options:
      image: papers:1
      grace_seconds: 2h
      {option}
"""


def load(place: Path, option: str) -> project_file.Config:
    (place / "sprat.yml").write_text(FILE.format(option=option))
    return project_file.load(str(place / "sprat.yml"))


def test_wrong_option_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"sprat.yml, line 8: launcher_options.cpu: .* quantity"):
        load(tmp_path, "cpu: lots")


def test_template_is_read_when_the_file_is_applied(tmp_path: Path) -> None:
    (tmp_path / "pod.yml").write_text("spec:\n  nodeName: one\n")
    options = load(tmp_path, "template: pod.yml").pools["papers"].launcher_options
    assert options["template"] == {"spec": {"nodeName": "one"}}
    assert options["grace_seconds"] == 7200.0


def test_template_may_stand_in_the_file_itself(tmp_path: Path) -> None:
    options = load(tmp_path, "template: {spec: {nodeName: one}}").pools["papers"].launcher_options
    assert options["template"] == {"spec": {"nodeName": "one"}}


def test_wrong_template_is_told_with_both_places(tmp_path: Path) -> None:
    (tmp_path / "pod.yml").write_text("spec:\n  - a\n")
    with pytest.raises(InvalidInput, match=r"line 8: .*template.spec must be a mapping"):
        load(tmp_path, "template: pod.yml")
    (tmp_path / "pod.yml").write_text("spec: {\n")
    with pytest.raises(InvalidInput, match=r"line 8: .*pod.yml, line 2, .*not YAML"):
        load(tmp_path, "template: pod.yml")


def test_missing_template_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"line 8: .*there is no .*pod.yml: template names it"):
        load(tmp_path, "template: pod.yml")


PAGE = (Path(__file__).parents[2] / "docs" / "operate" / "kubernetes.md").read_text()


def test_every_option_is_documented_with_its_default() -> None:
    table = PAGE.split("## Options\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.*?) \| .+ \|$", table, re.MULTILINE)
    shown = {name: default for names, default in rows for name in re.findall(r"\w+", names)}
    expected = {}
    for name, value in kubernetes.Options._defaults.items():
        text = f"{value:g}" if isinstance(value, float) else str(value).lower()
        expected[name] = "none" if value in (None, "", {}) else text
    assert shown == expected
    assert set(shown) == set(kubernetes.FIELDS)


def test_every_right_is_documented() -> None:
    table = PAGE.split("## Rights\n")[1]
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\S+) \| (.+) \|$", table, re.MULTILINE)
    expected = [
        (mode, group or "core", resource, ", ".join(verbs))
        for mode, needs in rbac.NEEDS.items()
        for group, resource, verbs in needs
    ]
    assert rows == expected


def test_missing_package_is_told_with_what_to_install(tmp_path: Path) -> None:
    quiet = FILE.format(option="ttl_seconds: 0") + "    start_on_push: false\n"
    (tmp_path / "sprat.yml").write_text(quiet)
    program = (
        "import sys; sys.modules['lightkube'] = None; "
        "from sprat.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )

    def run(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", program, *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )

    assert run("apply", "--no-import").returncode == 0
    assert run("push", "papers", "1").returncode == 0
    said = run("check", "papers")
    assert said.returncode == 2
    told = said.stderr.splitlines()[-1]
    assert told == "sprat: lightkube is not installed: pip install 'sprat[kubernetes]'"
