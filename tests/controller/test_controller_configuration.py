"""What a controller is told: who beats whom, and a sentence for whatever is wrong."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from controllers import Place

from sprat.cli.main import main
from sprat.config.environment import numbers
from sprat.controller import configuration, limits
from sprat.controller.config_file import ControlledScaleSet
from sprat.controller.reconciler import planned
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings

HERE = {"ORCHESTRATOR_URL": "http://here:1", "TENANT_ID": "acme", "MACHINE_GROUP": "gpu"}
SEED = """\
orchestrator_url: "https://vulcan.example.com"
tenant_id: "uuid-here"
machine_group: "gpu"

# Local overrides (optional)
overrides:
  min_replicas: 2        # override orchestrator default
  max_replicas: 50       # override orchestrator default
launcher: process
"""


def load(place: Path, text: str, **environment: str) -> configuration.Configuration:
    path = place / "config.yaml"
    path.write_text(text)
    return configuration.load(str(path), environment)


def test_the_file_of_the_document_is_read_as_printed(tmp_path: Path) -> None:
    found = load(tmp_path, SEED)
    [one] = found.scale_sets
    assert (found.url, one.tenant, one.group) == ("https://vulcan.example.com", "uuid-here", "gpu")
    assert one.overrides == {"min_replicas": 2, "max_replicas": 50}
    assert found.warnings == ()


def launched(text: str) -> str:
    """The same file with a launcher, which it has to name."""
    is_flow = text.startswith("{")
    return f"{{launcher: process, {text[1:]}" if is_flow else f"launcher: process\n{text}"


# environment, overrides, orchestrator: what counts
PRECEDENCE: list[tuple[Any, Any, Any, Any]] = [
    (None, None, None, 10),
    (None, None, 20, 20),
    (None, 30, None, 30),
    (None, 30, 20, 30),
    (40, None, None, 40),
    (40, None, 20, 40),
    (40, 30, None, 40),
    (40, 30, 20, 40),
]


@pytest.mark.parametrize(("environment", "overrides", "remote", "counts"), PRECEDENCE)
def test_environment_beats_overrides_beats_orchestrator_beats_defaults(
    environment: int | None, overrides: int | None, remote: int | None, counts: int
) -> None:
    layers = [
        {} if value is None else {"max_replicas": value}
        for value in (remote, overrides, environment)
    ]
    assert limits.merged(*layers).max_replicas == counts


def test_the_defaults_are_those_of_the_document() -> None:
    assert tuple(limits.ScaleSetLimits()) == (0, 10, 1.0, 300.0, 30.0)


def test_each_number_has_its_variable() -> None:
    given = {
        "MIN_REPLICAS": "1",
        "MAX_REPLICAS": "7",
        "TARGET_PENDING_PER_WORKER": "2.5",
        "SCALE_DOWN_DELAY_SECONDS": "60",
        "POLL_INTERVAL_SECONDS": "5",
    }
    found = limits.merged({}, {}, numbers(given, limits.FIELDS))
    assert tuple(found) == (1, 7, 2.5, 60, 5)
    assert numbers(dict.fromkeys(given, " "), limits.FIELDS) == {}


def test_variables_beat_the_file(tmp_path: Path) -> None:
    found = load(tmp_path, SEED, **HERE, MAX_REPLICAS="3")
    [one] = found.scale_sets
    assert (found.url, one.tenant, one.group) == ("http://here:1", "acme", "gpu")
    assert limits.merged({}, one.overrides, found.environment).max_replicas == 3


def test_the_file_needs_only_what_the_environment_does_not_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "worker-controller-config.yaml"
    path.write_text("launcher: process\n")
    found = configuration.load(None, HERE)
    assert found.scale_sets == (ControlledScaleSet(tenant="acme", group="gpu", launcher="process"),)
    path.write_text("launcher: process\npool: papers\n")
    assert configuration.load(None, HERE).scale_sets[0].pool == "papers"


@pytest.mark.parametrize(
    "text", ["pool: papers", "scale_sets: [{pool: a, launcher: process}, {pool: b}]"]
)
def test_every_scale_set_needs_a_launcher(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidInput, match=r"config\.yaml names no launcher: add launcher: proc"):
        load(tmp_path, f"{text}\n", SPRAT_URL="sqlite:///x.db")


def test_scale_sets_have_what_is_above_them(tmp_path: Path) -> None:
    text = """\
        store: sqlite:///fleet.db
        launcher: process
        overrides: {min_replicas: 1, max_replicas: 4}
        scale_sets:
          - {pool: papers, machine_group: gpu, overrides: {max_replicas: 9}}
          - {pool: images, algorithm: step, algorithm_options: {steps: {"0": 0, "1+": 2}}}
        lease_seconds: 1m
    """
    found = load(tmp_path, text)
    assert found.url == f"sqlite:///{tmp_path}/fleet.db", "beside the file"
    assert found.lease_seconds == 60.0
    first, second = found.scale_sets
    assert first == ControlledScaleSet(
        pool="papers",
        group="gpu",
        launcher="process",
        overrides={"min_replicas": 1, "max_replicas": 9},
    )
    assert (second.pool, second.group, second.algorithm) == ("images", None, "step")
    assert second.overrides == {"min_replicas": 1, "max_replicas": 4}


# -- algorithms ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "policy"),
    [
        ("queue_depth", "pending-per-worker"),
        ("percentage", "headroom"),
        ("step", "step"),
        ("queue-depth", "queue-depth"),
        ("slo", "slo"),
        ("latency", "latency"),
        ("fixed", "fixed"),
    ],
)
def test_every_algorithm_can_be_chosen(tmp_path: Path, name: str, policy: str) -> None:
    [one] = load(tmp_path, f"launcher: process\nalgorithm: {name}\n", **HERE).scale_sets
    made = planned(PoolSettings(), one, limits.ScaleSetLimits(max_replicas=4), {})
    assert (made.policy, made.max_workers, made.min_workers) == (policy, 4, 0)


def test_a_group_goes_by_its_queue_and_a_pool_by_its_own_policy() -> None:
    own = PoolSettings(policy="fixed", policy_options={"workers": 3})
    of_group = planned(
        own, ControlledScaleSet(group="gpu", launcher="process"), limits.ScaleSetLimits(), {}
    )
    assert of_group.policy == "pending-per-worker"
    assert of_group.policy_options == {
        "target_pending_per_worker": 1.0,
        "scale_down_delay_seconds": 300.0,
    }
    of_pool = planned(own, ControlledScaleSet(launcher="process"), limits.ScaleSetLimits(), {})
    assert (of_pool.policy, of_pool.policy_options) == ("fixed", {"workers": 3})


def test_options_of_the_algorithm_beat_what_comes_from_elsewhere() -> None:
    wanted = ControlledScaleSet(
        algorithm="headroom",
        algorithm_options={"scale_down_delay_seconds": 5.0},
        launcher="process",
    )
    remote = limits.ScaleSetLimits(scale_down_delay_seconds=60.0)
    made = planned(PoolSettings(), wanted, remote, {})
    assert made.policy_options == {"scale_down_delay_seconds": 5.0}
    here = limits.ScaleSetLimits(scale_down_delay_seconds=7.0)
    made = planned(PoolSettings(), wanted, here, {"scale_down_delay_seconds": 7.0})
    assert made.policy_options == {"scale_down_delay_seconds": 7.0}


# -- warnings -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "environment", "warning", "counts"),
    [
        (
            "overrides: {min_replicas: 2, min_workers: 3}",
            {},
            "min_replicas and its other name do not agree: min_replicas is used",
            {"min_replicas": 2},
        ),
        (
            "overrides: {max_workers: 3, max_replicas: 2}",
            {},
            "max_replicas and its other name do not agree: max_replicas is used",
            {"max_replicas": 2},
        ),
        (
            "overrides: {min_replicas: 5, max_replicas: 2}",
            {},
            "min_replicas 5 is more than max_replicas 2: 2 is used",
            {"min_replicas": 2, "max_replicas": 2},
        ),
        (
            "overrides: {min_replicas: 5}",
            {"MAX_REPLICAS": "2"},
            "min_replicas 5 is more than max_replicas 2: 2 is used",
            {"min_replicas": 2, "max_replicas": 2},
        ),
        (
            "overrides: {scale_down_threshold: 2, max_replicas: 3}",
            {},
            "line 2: scale_down_threshold is not used: workers leave when fewer are needed",
            {"max_replicas": 3},
        ),
        (
            "overrides: {target_pending_per_worker: 2, scale_up_threshold: 3}",
            {},
            "target_pending_per_worker and its other name do not agree",
            {"target_pending_per_worker": 2},
        ),
        (
            "store: sqlite:///a.db",
            {"SPRAT_URL": "http://there:1"},
            "ORCHESTRATOR_URL and SPRAT_URL name two stores: ORCHESTRATOR_URL is used",
            {},
        ),
        (
            "{algorithm: headroom, algorithm_options: {scale_down_delay_seconds: 5},"
            " overrides: {scale_down_delay_seconds: 7}}",
            {},
            "overrides.scale_down_delay_seconds and algorithm_options.scale_down_delay_seconds do "
            "not agree: 7 is used",
            {"scale_down_delay_seconds": 7},
        ),
    ],
)
def test_two_names_that_do_not_agree_are_a_warning(
    tmp_path: Path,
    text: str,
    environment: dict[str, str],
    warning: str,
    counts: dict[str, float],
) -> None:
    found = load(tmp_path, launched(text), **HERE, **environment)
    assert [warning in said for said in found.warnings] == [True], found.warnings
    merged = limits.merged({}, found.scale_sets[0].overrides, found.environment)
    assert merged.as_dict().items() >= counts.items()


def test_thresholds_and_cooldown_are_other_names(tmp_path: Path) -> None:
    text = "overrides: {scale_up_threshold: 4, cooldown_period: 2m}"
    found = load(tmp_path, launched(text), **HERE)
    assert found.warnings == ()
    [one] = found.scale_sets
    assert one.overrides == {"target_pending_per_worker": 4, "scale_down_delay_seconds": 120}


def test_two_names_that_agree_are_none(tmp_path: Path) -> None:
    text = "{group: gpu, machine_group: gpu, overrides: {min_replicas: 2, min_workers: 2}}"
    assert load(tmp_path, launched(text), **HERE).warnings == ()


# -- complaints ---------------------------------------------------------------------------------

# the file, the sentence after "config.yaml, "
BROKEN = [
    ("pool: [", "line 1, column 8: this is not YAML"),
    ("pool: &a b", "line 1, column 7: anchors (&) and aliases (*) are not supported"),
    ("- pool", "line 1: the file must be a mapping (key: value), not a list"),
    ("just text", "line 1: the file must be a mapping (key: value), not 'just text'"),
    ("\nmachin_group: gpu", "line 2: the file has no 'machin_group': did you mean machine_group?"),
    ("pool: bad/name", "line 1: the pool name 'bad/name' must be"),
    ("pool: [a]", "line 1: the pool name must be a string, not list"),
    ("tenant_id: 7", "line 1: the tenant_id must be a string, not int"),
    ("\n\nmachine_group: ''", "line 3: the machine_group must be 1 to 128 printable characters"),
    ("orchestrator_url: vulcan", "line 1: orchestrator_url must be a URL, not 'vulcan'"),
    ("launcher: podman", "line 1: launcher must be process or docker or kubernetes, not 'podman'"),
    ("launcher: docker", "line 1: the launcher docker: it needs an image"),
    ("environment: HOME", "line 1: environment must be a list of texts, not 'HOME'"),
    ("environment: [A=1]", "line 1: environment takes names without values: A, not A=..."),
    ("launcher_options: [x]", "line 1: launcher_options must be a mapping (option: value), not a"),
    (
        "launcher: process\nlauncher_options: {image: x}",
        "line 2: the launcher process: it has no option 'image': it has none",
    ),
    ("algorithm: queue_dept", "line 1: there is no algorithm 'queue_dept': did you mean queue_d"),
    ("algorithm: 7", "line 1: there is no algorithm 7"),
    ("algorithm: [step]", "line 1: there is no algorithm ['step']"),
    ("algorithm_options: {x: 1}", "line 1: algorithm_options need an algorithm: name it too"),
    (
        "algorithm: step\nalgorithm_options: {steps: {'1-5': 1}}",
        "line 2: the policy step: steps: a range begins at 1, expected 0",
    ),
    ("overrides: 7", "line 1: overrides must be a mapping (key: value), not 7"),
    ("overrides:\n  max_replicas: many", "line 2: max_replicas must be a whole number from 0 to"),
    ("overrides:\n  max_replicas: 1.5", "line 2: max_replicas must be a whole number from 0 to"),
    ("overrides:\n  max_replicas: true", "line 2: max_replicas must be a whole number from 0"),
    ("overrides:\n  min_workers: -1", "line 2: min_replicas must be a whole number from 0 to"),
    ("overrides:\n  max_replcas: 5", "line 2: overrides has no 'max_replcas': did you mean max_r"),
    ("overrides:\n  target_pending_per_worker: .nan", "line 2: target_pending_per_worker must be"),
    ("overrides:\n  poll_interval_seconds: 0", "line 2: poll_interval_seconds must be more than"),
    ("overrides:\n  poll_interval_seconds: soon", "line 2: poll_interval_seconds must be seco"),
    ("scale_sets: {pool: a}", "line 1: scale_sets must be a list (- pool: ...), not a mapping"),
    ("scale_sets: []", "line 1: scale_sets must be a list"),
    ("scale_sets:\n- 7", "line 2: a scale set must be a mapping (key: value), not 7"),
    ("scale_sets:\n- store: x", "line 2: a scale set has no 'store'"),
    ("scale_sets:\n- pool: a\n- pool: a", "line 1: there are two scale sets for a"),
    ("lease_seconds: 0.1", "line 1: lease_seconds must be at least 1 seconds, not 0.1"),
    ("lease_seconds: long", "line 1: lease_seconds must be seconds"),
    ("config_ttl_seconds: -1", "line 1: config_ttl_seconds must be seconds"),
    ("drain_deadline_seconds: never", "line 1: drain_deadline_seconds must be seconds"),
    ("pool: a\npool: b", "line 2, column 1: 'pool' is here twice, first in line 1"),
]


@pytest.mark.parametrize(("text", "sentence"), BROKEN)
def test_what_is_wrong_in_the_file_is_one_sentence_with_its_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    text: str,
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, value in HERE.items():
        monkeypatch.setenv(name, value)
    Path("config.yaml").write_text(text)
    assert main(["controller", "config.yaml", "--once"]) == 2
    said = capsys.readouterr()
    assert said.err.startswith(f"sprat: config.yaml, {sentence}"), said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_sprat_yml_names_the_store_where_nothing_else_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sprat.yml").write_text("store: sqlite:///fleet.db\n")
    Path(configuration.FILE).write_text("launcher: process\n")
    assert configuration.load(None, {}).url == "sqlite:///fleet.db"
    Path(configuration.FILE).write_text("launcher: process\nstore: sqlite:///other.db\n")
    assert configuration.load(None, {}).url == "sqlite:///other.db"


# the environment, the sentence
INCOMPLETE: list[tuple[dict[str, str], str]] = [
    (
        {},
        "ORCHESTRATOR_URL, TENANT_ID and MACHINE_GROUP are missing: set them in the environment, "
        "or in worker-controller-config.yaml as orchestrator_url, tenant_id, machine_group; "
        "SPRAT_URL or sprat.yml names a store without an orchestrator",
    ),
    (
        {"ORCHESTRATOR_URL": "http://here:1"},
        "TENANT_ID and MACHINE_GROUP are missing: set them",
    ),
    (
        {"ORCHESTRATOR_URL": "http://here:1", "MACHINE_GROUP": "gpu"},
        "TENANT_ID is missing: set it in the environment, or in worker-controller-config.yaml as "
        "tenant_id",
    ),
    ({"TENANT_ID": "acme", "MACHINE_GROUP": "gpu"}, "ORCHESTRATOR_URL is missing: set it"),
    ({**HERE, "ORCHESTRATOR_URL": "here:1"}, "ORCHESTRATOR_URL must begin with http:// or https:"),
    ({**HERE, "MAX_REPLICAS": "many"}, "MAX_REPLICAS must be a whole number from 0 to 100000, no"),
    ({**HERE, "MIN_REPLICAS": "-1"}, "MIN_REPLICAS must be a whole number"),
    ({**HERE, "POLL_INTERVAL_SECONDS": "0"}, "POLL_INTERVAL_SECONDS must be more than 0"),
    ({**HERE, "TARGET_PENDING_PER_WORKER": "inf"}, "TARGET_PENDING_PER_WORKER must be a number"),
    ({**HERE, "MACHINE_GROUP": "x" * 200}, "the MACHINE_GROUP must be 1 to 128 printable"),
    ({"SPRAT_URL": "memory://"}, "memory:// is gone when the command ends"),
    ({"SPRAT_URL": "sqlite:///nowhere.db"}, "there is no store nowhere.db yet"),
    ({"SPRAT_URL": "nonsense://x"}, "unknown kind of store 'nonsense'"),
]


@pytest.mark.parametrize(("environment", "sentence"), INCOMPLETE)
def test_what_is_missing_or_wrong_in_the_environment_is_one_sentence(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    environment: dict[str, str],
    sentence: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("SPRAT_URL", *HERE):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    Path("worker-controller-config.yaml").write_text("launcher: process\n")
    assert main(["controller"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"sprat: {sentence}"), said
    assert said.count("\n") == 1


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"there is no nowhere\.yaml"):
        configuration.load("nowhere.yaml", HERE)


def test_one_group_and_many_scale_sets_do_not_go_together(tmp_path: Path) -> None:
    text = "scale_sets:\n- {pool: a, group: x}\n- {pool: b, group: y}\n"
    with pytest.raises(InvalidInput, match=r"MACHINE_GROUP is one group, but .* has 2 scale_sets"):
        load(tmp_path, text, **HERE)


def test_a_real_process_leaves_with_code_two(place: Place) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "sprat", "controller"],
        cwd=place.path,
        env=place.environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "are missing" in done.stderr
    assert "Traceback" not in done.stderr
