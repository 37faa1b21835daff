"""The first process of the cluster's own namespaces: starts the cluster, then runs a command in it.

It need not stop what it started. When it ends, the kernel ends every process of the namespace, and
with the last one go its network and its mounts; so it also is when somebody kills it.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from addresses import API_ADDRESS, NODE_ADDRESS
from control_plane import ControlPlane
from node import Node
from parts import Parts

# Places with fixed names that containerd and the kubelet write to: here they are their own.
PRIVATE = ("/run", "/var/log", "/var/lib/cni")


def main(place: Path, programs: Path, command: list[str]) -> int:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)  # they are for the command, which we outlive
    began = time.monotonic()
    _make_room()
    parts = Parts(place)
    plane = ControlPlane(place, programs, parts)
    plane.start()
    Node(place, programs, parts, cgroup=f"/{place.name}").start(plane)
    print(f"Kubernetes is up after {time.monotonic() - began:.0f} s", flush=True)
    environment = {"KUBECONFIG": str(plane.kubeconfig), "SPRAT_TEST_CLUSTER": str(place)}
    return _await(subprocess.Popen(command, env=os.environ | environment).pid)


def _make_room() -> None:
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    for address in (NODE_ADDRESS, API_ADDRESS):
        subprocess.run(["ip", "address", "add", f"{address}/32", "dev", "lo"], check=True)
    for directory in PRIVATE:
        Path(directory).mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "sprat", directory], check=True)


def _await(command: int) -> int:
    """Wait for the command to end, and clear away every orphan that ends meanwhile."""
    while True:
        pid, status = os.wait()
        if pid == command:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    place, programs, *command = sys.argv[1:]
    sys.exit(main(Path(place), Path(programs), command))
