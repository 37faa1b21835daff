"""sprat.yml, the environment and flags: what they mean, and the sentence when they mean nothing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sprat.config import project_file
from sprat.core import fields
from sprat.core.errors import InvalidInput


def load(text: str, place: Path) -> project_file.Config:
    path = place / "sprat.yml"
    path.write_text(text)
    return project_file.load(str(path))


def test_a_pool_takes_every_setting_from_the_file(tmp_path: Path) -> None:
    read = load(
        """
store: sqlite:///fleet.db
launcher: process
pools:
  papers:
    handler: papers:analyze
    directory: code
    environment: [TOKEN]
    max_workers: 3
    timeout_seconds: 5m
    keep_done_seconds: 2d
    keep_poisoned_seconds: null
    tenant_limits: {acme: 2}
""",
        tmp_path,
    )
    papers = read.pools["papers"]
    assert read.store == f"sqlite:///{tmp_path}/fleet.db"
    assert (papers.handler, papers.max_workers) == ("papers:analyze", 3)
    assert papers.directory == str(tmp_path / "code")
    assert (papers.timeout_seconds, papers.keep_done_seconds) == (300.0, 172800.0)
    assert papers.tenant_limits == {"acme": 2}
    assert papers.start_on_push is True


def test_defaults_are_those_of_the_record_but_for_start_and_place(tmp_path: Path) -> None:
    from sprat.core.model import PoolSettings

    with_command = load("pools: {a: {command: [cat]}}", tmp_path).pools["a"]
    nobody = load("pools: {a: }", tmp_path).pools["a"]
    assert nobody == PoolSettings(directory=str(tmp_path))
    assert with_command == nobody.replace(command=["cat"], start_on_push=True)


@pytest.mark.parametrize(
    ("written", "means"),
    [
        ("5", 5),
        ("0.5", 0.5),
        ("500ms", 0.5),
        ("90s", 90.0),
        ("5m", 300.0),
        ("2h", 7200.0),
        ("1.5d", 129600.0),
    ],
)
def test_seconds_may_have_a_unit(written: str, means: float, tmp_path: Path) -> None:
    text = f"pools: {{a: {{idle_seconds: {written}}}}}"
    assert load(text, tmp_path).pools["a"].idle_seconds == means


@pytest.mark.parametrize(
    "text",
    ["", "m", "5 m", "5w", "1h30m", "-5m", "\N{ARABIC-INDIC DIGIT FIVE}m", "5ss", "1.2.3s", "."],
)
def test_what_is_no_time_is_refused(text: str) -> None:
    assert fields.duration(text) is None


def test_yaml_is_version_1_2(tmp_path: Path) -> None:
    read = load("pools: {on: {environment: [no, off, yes]}}", tmp_path)
    assert read.pools["on"].environment == ["no", "off", "yes"]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("pools:\n  a:\n    max_worker: 3", 3, "'max_worker': did you mean max_workers?"),
        ("pools:\n  a:\n    max_workers: ten", 3, "pools.a.max_workers must be a whole number"),
        ("pools:\n  a:\n    max_workers: true", 3, "pools.a.max_workers must be a whole number"),
        ("pools:\n  a:\n    timeout_seconds: soon", 3, "pools.a.timeout_seconds must be seconds"),
        ("pools:\n  a:\n    idle_seconds: .nan", 3, "pools.a.idle_seconds must be seconds"),
        ("pools:\n  a:\n    handler: nothing", 3, "pools.a.handler must be module:function"),
        ("pools:\n  a:\n    command: ls", 3, "pools.a.command must be a list of texts"),
        ("pools:\n  a:\n    environment: [1]", 3, "pools.a.environment must be a text"),
        ("pools: {a: {environment: [KEY=s3cret]}}", 1, "names without values: KEY, not KEY=..."),
        ("pools:\n  a:\n    start_on_push: yes", 3, "must be true or false, not 'yes'"),
        ("pools:\n  a:\n    launcher: rocket", 3, "pools.a.launcher must be process or docker"),
        ("launcher: rocket", 1, "launcher must be process or docker or kubernetes"),
        ("pools:\n  a:\n    tenant_limits: 3", 3, "must be a mapping"),
        ("pools:\n\n  a: {min_workers: 3, max_workers: 2}", 3, "pools.a: min_workers 3 is more"),
        ("pools:\n  a: {handler: 'a:b', command: [c]}", 2, "pools.a: a pool has a handler or"),
        ("pools:\n  bad name: {}", 2, "the pool name 'bad name' must be"),
        ("pools:\n  - a", 2, "pools must be a mapping (key: value), not a list"),
        ("pools:\n  a: 3", 2, "pools.a must be a mapping (key: value), not 3"),
        ("# nothing\npool: {}", 2, "unknown key 'pool': did you mean pools?"),
        ("xyzzy: 1", 1, "unknown key 'xyzzy': use store, launcher, pools"),
        ("store: sqlite:///a.db\ntriggers: {}", 2, "triggers must be a list"),
        ("store: fleet.db", 1, "store must be a URL such as sqlite:///sprat.db, not 'fleet.db'"),
        ("store:", 1, "store must be a URL such as sqlite:///sprat.db, not nothing"),
        ("pools:\n  a: {}\n  a: {}", 3, "'a' is here twice, first in line 2"),
        ("- a", 1, "the file must be a mapping (key: value), not a list"),
        ("pools:\n  a: &x {}\n  b: *x", 2, "anchors (&) and aliases (*) are not supported"),
        ("pools: !!python/object:os.system {}", 1, "the tag tag:yaml.org,2002:python"),
        ("pools:\n  a: b: c", 2, "this is not YAML: mapping values are not allowed here"),
        ("pools:\n\ta: b", 2, "this is not YAML: found character"),
        ("pools: [", 1, "this is not YAML"),
        ("pools:\n  a:\n    max_attempts: 3", 3, "each job has its own: `sprat push --max-attemp"),
        ("pools:\n  a:\n    max_retries: 3", 3, "each job has its own: `sprat push --max-attempts"),
        ("pools:\n  a:\n    timeout_seconds: 5 minutes", 3, "or a time such as 500ms, 90s, 5m"),
        ("pools:\n  a:\n    policy_options:\n      wait_secons: 3", 4, "mean wait_seconds?"),
        ("pools:\n  a:\n    policy_options:\n\n      wait_seconds: soon", 5, "such as 500ms, 90s"),
        ("pools:\n  a:\n    policy_options: {x: 1}", 3, "the policy slo: it has no option 'x'"),
        ("a: 1\n---\nb: 2", 2, "this is not YAML"),
        ("? [a]\n: 1", 1, "a key must be a plain text"),
        ("pools:\n  a:\n    max_workers: " + "9" * 5000, 3, "is no int we can read"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_named_with_its_line(
    text: str, line: int, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput) as error:
        load(text, tmp_path)
    sentence = str(error.value)
    assert sentence.startswith(f"{tmp_path}/sprat.yml, line ")
    assert says in sentence
    assert re.findall(r"line (\d+)", sentence)[0] == str(line)
    assert "\n" not in sentence


def test_a_bomb_is_refused_at_its_first_alias(tmp_path: Path) -> None:
    laughs = ["a0: &a0 [x]"] + [f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 40)]
    with pytest.raises(InvalidInput, match="anchors"):
        load("\n".join(laughs), tmp_path)


@pytest.mark.parametrize(
    "text", ["[" * 60 + "]" * 60, "[" * 100_000, "- " * 60 + "x", "{a: " * 3000], ids=len
)
def test_deep_nesting_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="nested too deeply: 50 levels at most"):
        load(f"pools: {text}" if text[0] != "-" else text, tmp_path)


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"#" * 1_000_001, "larger than 1,000,000 bytes"),
        (b"a: 1\nb: \xff", "line 2, column 4: this is not UTF-8"),
        (b"a: \x00", "line 1, column 4: this is not YAML"),
    ],
    ids=["long", "latin", "null"],
)
def test_what_is_no_text_is_refused(raw: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "sprat.yml"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=says):
        project_file.load(str(path))


def test_a_flag_beats_the_environment_beats_the_file(place: Path) -> None:
    path = str(place / "sprat.yml")
    Path(path).write_text("store: sqlite:///file.db\n")
    assert project_file.store_url("flag://", {"SPRAT_URL": "env://"}, path=path) == "flag://"
    assert project_file.store_url(None, {"SPRAT_URL": "env://"}, path=path) == "env://"
    assert (
        project_file.store_url(None, {"SPRAT_URL": ""}, path=path) == f"sqlite:///{place}/file.db"
    )
    Path(path).unlink()
    assert project_file.store_url(None, {}, path=path) == "sqlite:///sprat.db"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("store: sqlite:////abs/x.db", "sqlite:////abs/x.db"),
        ("store: sqlite:///x.db  # here", "sqlite:///x.db"),
        ("store: 'sqlite:///x.db'", "sqlite:///x.db"),
        ("pools: {}\nstore:\n  sqlite:///x.db", "sqlite:///x.db"),
        ('{"store": "sqlite:///x.db"}', "sqlite:///x.db"),
        ("pools: {stores: {}}", "sqlite:///sprat.db"),
        ("broken: [", "sqlite:///sprat.db"),
    ],
)
def test_the_store_is_found_however_it_is_written(text: str, url: str, place: Path) -> None:
    (place / "sprat.yml").write_text(text)
    assert project_file.store_url(None, {}) == url


def test_the_environment_limits_one_pass() -> None:
    assert project_file.check_overrides({"SPRAT_MAX_WORKERS": "7"}) == {"max_workers": 7}
    assert project_file.check_overrides({"SPRAT_MIN_WORKERS": "0"}) == {"min_workers": 0}
    assert project_file.check_overrides({"SPRAT_MAX_WORKERS": ""}) == {}
    with pytest.raises(InvalidInput, match="SPRAT_MAX_WORKERS must be a whole number"):
        project_file.check_overrides({"SPRAT_MAX_WORKERS": "many"})
