"""Builds the programs of Kubernetes from Debian's source, once for a machine."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import source
from places import HERE, cache, install

PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet")
FILES = ("kube", "pause")  # what is built; the programs are names of `kube`
OPENAPI = "pkg/generated/openapi"  # the one generated package that the source leaves out
MARKED = "+k8s:openapi-gen="


def built() -> Path:
    """The directory of the programs, building them if they are not there."""
    place = cache() / f"programs-{_recipe()}"
    if not _is_whole(place):
        with _alone():
            if not _is_whole(place):
                _build_into(place)
    return place


def _recipe() -> str:
    """Changes whenever what would be built changes."""
    parts = [source.DEBIAN_VERSION, *(p.read_text() for p in sorted(HERE.glob("*.go")))]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:12]


def _is_whole(place: Path) -> bool:
    """Are the files there and the ones that the build left?"""
    try:
        return json.loads((place / "built.json").read_text()) == _sums(place)
    except (OSError, ValueError):
        return False


def _sums(place: Path) -> dict[str, str]:
    return {name: _sum(place / name) for name in FILES}


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def _alone() -> Iterator[None]:
    """One build at a time: a second one waits, and then finds it done."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _build_into(place: Path) -> None:
    began = time.monotonic()
    print("building Kubernetes: 5 to 10 minutes, once for this machine", flush=True)
    for left in cache().glob("building-*"):  # by a build that was killed
        shutil.rmtree(left)
    install("golang-go")
    with tempfile.TemporaryDirectory(prefix="building-", dir=cache()) as work:
        made = _build(Path(work))
        (made / "built.json").write_text(json.dumps(_sums(made)))
        shutil.rmtree(place, ignore_errors=True)
        made.rename(place)
    print(f"built Kubernetes in {time.monotonic() - began:.0f} s", flush=True)


def _build(work: Path) -> Path:
    tree = source.unpack(work)
    go = _Go(work, tree)
    made = work / "made"
    made.mkdir()
    _generate_openapi(go, work)
    for name in FILES:
        main = tree / "cmd" / f"sprat-{name}" / "main.go"
        main.parent.mkdir()
        shutil.copy(HERE / f"{name}.go", main)
        go.build(f"./cmd/sprat-{name}", made / name)
    for program in PROGRAMS:
        (made / program).symlink_to("kube")
    return made


class _Go:
    """Debian's compiler, kept off the network: everything it needs is in the tree."""

    def __init__(self, work: Path, tree: Path) -> None:
        self.tree = tree
        self._environment = os.environ | {
            "GOPATH": str(work),
            "GOCACHE": str(work / "compiled"),
            "GOTMPDIR": str(work),
            "GO111MODULE": "off",
            "GOPROXY": "off",
            "GOFLAGS": "",
            "CGO_ENABLED": "0",
        }

    def build(self, package: str, target: Path) -> None:
        # No cloud and no Docker inside: a third less to compile.
        tags = ("-tags", "providerless dockerless")
        self.run("go", "build", *tags, "-ldflags", _versions(), "-o", str(target), package)

    def run(self, *command: str) -> None:
        subprocess.run(command, cwd=self.tree, env=self._environment, check=True)


def _versions() -> str:
    """Linker flags that tell the programs which version they are."""
    major, minor, _ = source.VERSION.split(".")
    about = {"gitVersion": f"v{source.VERSION}", "gitMajor": major, "gitMinor": minor}
    flags = ["-s", "-w"]
    for package in ("component-base/version", "client-go/pkg/version"):
        vendored = f"k8s.io/kubernetes/vendor/k8s.io/{package}"
        flags += [f"-X {vendored}.{name}={value}" for name, value in about.items()]
    return " ".join(flags)


def _generate_openapi(go: _Go, work: Path) -> None:
    generator = work / "openapi-gen"
    go.build("./vendor/k8s.io/kube-openapi/cmd/openapi-gen", generator)
    go.run(
        *(str(generator), "--go-header-file", "hack/boilerplate/boilerplate.generatego.txt"),
        *("--output-file-base", "zz_generated.openapi"),
        *("--output-package", f"k8s.io/kubernetes/{OPENAPI}"),
        *("--input-dirs", ",".join(_described_packages(go.tree))),
        *("--report-filename", str(work / "violations")),
    )


def _described_packages(tree: Path) -> list[str]:
    """The packages whose types ask to be described. vendor/k8s.io links to the staging tree, so
    that is where they are looked for, and vendor/ is how the compiler calls them."""
    found = set()
    for top in ("pkg", "cmd", "plugin", "staging/src"):
        for file in (tree / top).rglob("*.go"):
            path = file.relative_to(tree).as_posix()
            if _is_code(path) and MARKED in file.read_text():
                found.add(path.rpartition("/")[0].replace("staging/src", "vendor", 1))
    return [f"k8s.io/kubernetes/{package}" for package in sorted(found)]


def _is_code(path: str) -> bool:
    others = ("/code-generator/", "/sample-apiserver/", "/testdata/", "/_examples/")
    return not path.endswith("_test.go") and not any(other in path for other in others)
