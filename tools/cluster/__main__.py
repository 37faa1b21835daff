"""A real Kubernetes on this machine, for as long as a command runs: python tools/cluster COMMAND

The cluster and the command live in namespaces of their own (network, processes, mounts): nothing of
it reaches the machine's network, and nothing of it is left when the command, or this, has ended.
The command finds the cluster by KUBECONFIG. Without a command, it only builds what a cluster needs.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import build
import images
from places import HERE, install
from run_directory import run_directory

PACKAGES = (
    *("etcd-server", "containerd", "runc", "containernetworking-plugins"),
    *("iproute2", "openssl"),
)
NAMESPACES = ("unshare", "--net", "--mount", "--pid", "--mount-proc", "--fork", "--kill-child")


def main(command: list[str]) -> int:
    reason = _is_impossible()
    if reason:
        print(f"no Kubernetes here: {reason}")
        return 1 if os.environ.get("CI") and os.getuid() == 0 else 0
    install(*PACKAGES)
    programs = build.built()
    return _run(programs, command) if command else 0


def _is_impossible() -> str | None:
    """Why this machine cannot run it. What a machine could, but does not, is a failure."""
    if os.getuid() != 0:
        return "it takes root, for containers of its own"
    if not shutil.which("apt-get"):
        return "it is built from Debian's packages"
    probe = subprocess.run([*NAMESPACES, "true"], check=False, capture_output=True, text=True)
    return f"no namespaces of its own ({probe.stderr.strip()})" if probe.returncode else None


def _run(programs: Path, command: list[str]) -> int:
    signal.signal(signal.SIGINT, lambda *_: None)  # the command gets it as well, and ends
    with run_directory() as place:
        images.write(place / "images", programs)
        # Should this process be killed, the kernel kills that one, and with it the namespaces.
        inside = ["setpriv", "--pdeathsig", "KILL", *NAMESPACES, sys.executable, HERE / "inside.py"]
        child = subprocess.Popen([*inside, place, programs, *command])
        signal.signal(signal.SIGTERM, lambda *_: child.kill())
        return child.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
