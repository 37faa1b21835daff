"""The images that pods run, as archives that containerd imports."""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import tarfile
from pathlib import Path

from node import PAUSE
from places import ROOT

SPRAT = "localhost/sprat:test"
ADDED = {"tests/kubernetes/pod_jobs.py": "/app/pod_jobs.py"}


def write(place: Path, programs: Path) -> None:
    place.mkdir()
    _write_pause(place / "pause.tar", programs / "pause")
    added = [f"--add={ROOT / source}:{target}" for source, target in ADDED.items()]
    image = [ROOT / "tools" / "image", place / "sprat.tar", SPRAT, *added]
    subprocess.run([*image, "--extras=kubernetes,server"], check=True)


def _write_pause(archive: Path, program: Path) -> None:
    """The image that holds a pod open."""
    layer = _tar({"pause": program.read_bytes()}, mode=0o755)
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/pause"]},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}"]},
    }
    about = [{"Config": "config.json", "RepoTags": [PAUSE], "Layers": ["layer.tar"]}]
    files = {"config.json": config, "manifest.json": about}
    contents = {name: json.dumps(value).encode() for name, value in files.items()}
    archive.write_bytes(_tar({**contents, "layer.tar": layer}))


def _tar(files: dict[str, bytes], mode: int = 0o644) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            entry.mode = mode
            tar.addfile(entry, io.BytesIO(content))
    return written.getvalue()
