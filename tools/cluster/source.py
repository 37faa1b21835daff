"""The source of Kubernetes, as Debian ships it, with every library it is built from."""

from __future__ import annotations

import subprocess
from pathlib import Path

PACKAGE = "kubernetes"
VERSION = "1.20.2"
DEBIAN_VERSION = "1.20.5+really1.20.2-1.1+deb12u1"
# The copy of this library in the source crashes when a Go of today builds it; Debian's does not.
REPAIRED = "github.com/modern-go/reflect2"
REPAIRED_PACKAGE = "golang-github-modern-go-reflect2-dev"
AS_ROOT = "APT::Sandbox::User=root"  # the directory that it writes to is root's alone


def unpack(work: Path) -> Path:
    """Fetch the source into this directory; where the tree of Kubernetes is in it."""
    tree = work / "src" / "k8s.io" / "kubernetes"
    tree.mkdir(parents=True)
    apt = _apt_for_sources(work)
    _run([*apt, "update"], work)
    _run([*apt, "source", "--download-only", f"{PACKAGE}={DEBIAN_VERSION}"], work)
    (tarball,) = work.glob("kubernetes_*.orig.tar.gz")
    _run(["tar", "-xzf", str(tarball), "-C", str(tree), "--strip-components=1"], work)
    _repair(work, tree)
    return tree


def _apt_for_sources(work: Path) -> list[str]:
    """apt-get that asks the machine's own mirrors for sources, and leaves its lists as they are."""
    sources = work / "sources.sources"
    sources.write_text(_source_entries())
    for part in ("lists/partial", "cache/archives/partial"):
        (work / part).mkdir(parents=True)
    settings = {
        "Dir::Etc::sourcelist": sources,
        "Dir::Etc::sourceparts": "/dev/null",
        "Dir::State::lists": work / "lists",
        "Dir::Cache": work / "cache",
    }
    options = [word for name, value in settings.items() for word in ("-o", f"{name}={value}")]
    return ["apt-get", "-qq", "-o", AS_ROOT, *options]


def _source_entries() -> str:
    """The machine's Debian mirrors, as places of source packages."""
    entries = Path("/etc/apt/sources.list.d/debian.sources")
    if not entries.exists():
        raise SystemExit(f"{entries} is not there: sources are fetched from Debian's mirrors only")
    lines = entries.read_text().splitlines()
    return "\n".join("Types: deb-src" if line.startswith("Types:") else line for line in lines)


def _repair(work: Path, tree: Path) -> None:
    _run(["apt-get", "-qq", "-o", AS_ROOT, "download", REPAIRED_PACKAGE], work)
    (package,) = work.glob(f"{REPAIRED_PACKAGE}_*.deb")
    _run(["dpkg-deb", "--extract", str(package), "repaired"], work)
    vendored = tree / "vendor" / REPAIRED
    for file in vendored.iterdir():
        file.unlink()
    for file in (work / "repaired/usr/share/gocode/src" / REPAIRED).iterdir():
        file.rename(vendored / file.name)


def _run(command: list[str], work: Path) -> None:
    subprocess.run(command, cwd=work, check=True, stdin=subprocess.DEVNULL)
