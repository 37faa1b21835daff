"""What a pool may say about its containers, and the sentence for what it may not."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sprat.config import project_file, settings
from sprat.core.errors import InvalidInput
from sprat.core.model import PoolSettings
from sprat.launchers import option_checks
from sprat.launchers.docker import containers
from sprat.launchers.docker import options as docker

GUIDE = Path(__file__).parent.parent.parent / "docs/operate/docker.md"
GOOD: list[dict[str, Any]] = [
    {"pull": "always"},
    {"network": "container:db"},
    {"memory": "512m"},
    {"memory": "1.5g"},
    {"memory": 64 << 20},
    {"cpus": 0.5},
    {"cpus": 4},
    {"volumes": ["/data:/data", "cache:/cache:ro"]},
    {"user": "1000:1000"},
    {"host": "tcp://builder:2376"},
    {"stop_seconds": 0},
    {"command": ["python", "-m", "sprat"]},
    {"labels": {"team": "reading"}},
    {"environment": {"MODE": "fast"}},
    {"read_only": True, "init": False},
]
BAD: list[tuple[dict[str, Any], str]] = [
    ({"image": ""}, "image must be a text, not ''"),
    ({"image": "my image"}, "image must be one word, not 'my image'"),
    ({"pull": "sometimes"}, "pull must be missing or always or never, not 'sometimes'"),
    ({"memory": "lots"}, "memory must be a size such as 512m or 2g, not 'lots'"),
    ({"memory": True}, "memory must be a size such as 512m or 2g, not True"),
    ({"memory": -1}, "memory must be a size such as 512m or 2g, not -1"),
    ({"memory": "1m"}, "memory must be at least 6m, not '1m'"),
    ({"cpus": 0}, "cpus must be a number of processors from 0.01, not 0"),
    ({"cpus": "2"}, "cpus must be a number of processors from 0.01, not '2'"),
    ({"volumes": "/a:/a"}, "volumes must be a list of texts, not '/a:/a'"),
    ({"volumes": ["/a"]}, "volumes: '/a' must be SOURCE:/TARGET or SOURCE:/TARGET:ro, with a"),
    ({"volumes": ["/a:b"]}, "volumes: '/a:b' must be SOURCE:/TARGET"),
    ({"volumes": ["./a:/b"]}, "volumes: './a:/b' must begin with / or with a volume's name"),
    ({"volumes": ["/a:/c", "/b:/c"]}, "volumes: two of them have the same target"),
    ({"host": "builder"}, "host must be an address such as unix:///run/docker.sock or tcp://"),
    ({"stop_seconds": -1}, "stop_seconds must be seconds from 0 to 86400, not -1"),
    ({"command": []}, "command must name a program of the image"),
    ({"command": "sprat"}, "command must be a list of texts, not 'sprat'"),
    ({"read_only": "yes"}, "read_only must be true or false, not 'yes'"),
    ({"labels": ["a"]}, "labels must be a mapping from name to text, not ['a']"),
    (
        {"labels": {"sprat.pool": "x"}},
        "labels: sprat.pool is ours: choose another label",
    ),
    ({"labels": {"n": 1}}, "labels.n must be a text, not 1: quote it"),
    ({"environment": {"A B": "x"}}, "environment: 'A B' is no name of a variable"),
    ({"environment": {"SPRAT_URL": "x"}}, "environment: SPRAT_URL is ours: choose another"),
    ({"environment": {"N": 1}}, "environment.N must be a text, not 1: quote it"),
    ({"imagine": "x"}, "it has no option 'imagine': did you mean image?"),
]


def test_every_option_is_checked() -> None:
    assert set(docker.FIELDS) == set(docker.Options().as_dict())


def test_every_option_is_documented_with_its_default() -> None:
    lines = GUIDE.read_text().splitlines()
    rows = [line.split(" | ") for line in lines if line.startswith("| `")]
    documented = {name.strip("| `"): default for name, default, *_ in rows}
    assert documented == {name: shown(value) for name, value in docker.Options().as_dict().items()}


def shown(default: object) -> str:
    """A default as a reader writes it."""
    if isinstance(default, bool):
        return str(default).lower()
    if default in (None, "", (), {}):
        return "none"
    if isinstance(default, tuple):
        return f"[{', '.join(default)}]"
    return f"{default:g}" if isinstance(default, float) else str(default)


@pytest.mark.parametrize("given", GOOD, ids=str)
def test_good_options_are_taken(given: dict[str, Any]) -> None:
    made = option_checks.options("docker", {"image": "papers:1", **given})
    assert {name: made.as_dict()[name] for name in given} == given


@pytest.mark.parametrize(("given", "why"), BAD, ids=lambda one: str(one)[:40])
def test_bad_options_are_refused_in_one_sentence(given: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        option_checks.options("docker", {"image": "papers:1", **given})
    assert str(refused.value).startswith(f"the launcher docker: {why}")
    assert "\n" not in str(refused.value)


def test_a_pool_of_containers_needs_an_image() -> None:
    with pytest.raises(InvalidInput, match=r"needs an image: set launcher_options\.image"):
        settings.changed(PoolSettings(), {"launcher": "docker"})


def test_a_file_is_refused_with_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "sprat.yml"
    path.write_text(
        "pools:\n"
        "  papers:\n"
        "    launcher: docker\n"
        "    launcher_options:\n"
        "      image: papers:1\n"
        "      memory: lots\n"
    )
    with pytest.raises(InvalidInput) as refused:
        project_file.load(str(path))
    assert f"{path}, line 6: launcher_options.memory: " in str(refused.value)
    assert "memory must be a size" in str(refused.value)


@pytest.mark.parametrize(
    ("text", "size"), [("6m", 6 << 20), ("1.5g", 3 << 29), ("512MB", 512 << 20), (7, 7)]
)
def test_sizes_are_bytes(text: str | int, size: int) -> None:
    assert docker.size(text) == size


# -- containers ---------------------------------------------------------------------------------


def test_a_store_has_the_same_mark_whatever_its_password() -> None:
    marks = {
        containers.mark(f"postgresql://app{password}@db/app{query}")
        for password in ("", ":one", ":t%40wo")
        for query in ("?schema=a&", "?schema=a&password=three")
    }
    assert len(marks) == 1
    assert containers.mark("postgresql://app@db/other") not in marks


def test_a_container_has_a_name_that_an_engine_takes() -> None:
    assert containers.container_name("papers", "w-1") == "sprat-papers-w-1"
    odd = containers.container_name("papers", "a worker/of ours")
    assert containers.NAME.fullmatch(odd)
    assert odd != containers.container_name("papers", "another worker/of ours")


@pytest.mark.parametrize(
    ("url", "options", "why"),
    [
        ("memory://", {}, "cannot share a memory store"),
        ("sqlite:////data/fleet.db", {}, "add /data:/data to launcher_options.volumes"),
        ("sqlite:////data/fleet.db", {"volumes": ("/data:/dat",)}, "add /data:/data"),
        ("http://127.0.0.1:8000", {}, "the store is at 127.0.0.1:8000, which inside"),
        ("redis://localhost/0", {"network": "fleet"}, "set launcher_options.network to host"),
        ("postgresql://a:b@[::1]:5432/app", {}, "the store is at [::1]:5432"),
    ],
)
def test_a_store_out_of_reach_is_refused(url: str, options: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        containers.check_reach(url, docker.Options(image="papers:1", **options))
    assert why in str(refused.value)


@pytest.mark.parametrize(
    ("url", "options"),
    [
        ("sqlite:////data/fleet.db?sync=push", {"volumes": ("/data:/data",)}),
        ("http://127.0.0.1:8000", {"network": "host"}),
        ("postgresql://app:secret@db.example.net/app", {}),
    ],
)
def test_a_store_within_reach_is_taken(url: str, options: dict[str, Any]) -> None:
    containers.check_reach(url, docker.Options(image="papers:1", **options))


def test_without_the_sdk_a_sentence_says_what_to_install() -> None:
    program = (
        "import sys; sys.modules['docker'] = None\n"
        "from sprat.fleet.launcher import open_launcher\n"
        "from sprat.core.model import PoolSettings\n"
        "from sprat.core.errors import MissingExtra\n"
        "pool = PoolSettings(launcher='docker', launcher_options={'image': 'papers:1'})\n"
        "try: open_launcher('docker').launch('redis://db', 'papers', pool, ['w-1'])\n"
        "except MissingExtra as error: print(error)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "docker is not installed: pip install 'sprat[docker]'\n"
