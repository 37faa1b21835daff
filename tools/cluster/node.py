"""One node: containerd, which runs containers, and a kubelet, which tells it which ones."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from addresses import NODE_ADDRESS
from control_plane import ControlPlane
from parts import Parts
from waiting import until

NAME = "node"
PAUSE = "localhost/pause:1"
PODS = "10.88.1.0/24"  # for pods that do not use the node's network

CONTAINERD = """
version = 2
root = "{place}/containerd"
state = "{place}/containerd-state"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  restrict_oom_score_adj = true  # the machine may not let us lower it
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{place}/cni"
"""


class Node:
    def __init__(self, place: Path, programs: Path, parts: Parts, cgroup: str) -> None:
        self.place = place
        self.programs = programs
        self.parts = parts
        self.cgroup = cgroup
        self.socket = place / "containerd.sock"

    def start(self, plane: ControlPlane) -> None:
        self._write_settings()
        self.parts.start("containerd", ["containerd", "-c", str(self.place / "containerd.toml")])
        until("containerd", self._answers, lambda: self.parts.check("containerd"))
        for image in (self.place / "images").iterdir():
            self._ctr("images", "import", str(image))
        self.parts.start("kubelet", self._kubelet(plane.kubeconfig))
        until("the node", lambda: _is_ready(plane), lambda: self.parts.check("kubelet"))

    def _answers(self) -> bool:
        return self.socket.exists() and self._ctr("version", check=False) == 0

    def _ctr(self, *words: str, check: bool = True) -> int:
        command = ["ctr", "--address", str(self.socket), "--namespace", "k8s.io", *words]
        with self.parts.log("ctr").open("ab") as log:
            return subprocess.run(command, stdout=log, stderr=log, check=check).returncode

    def _write_settings(self) -> None:
        (self.place / "containerd.toml").write_text(
            CONTAINERD.format(place=self.place, socket=self.socket, pause=PAUSE)
        )
        (self.place / "cni").mkdir()
        (self.place / "cni" / "pods.conflist").write_text(json.dumps(self._pod_network()))
        (self.place / "kubelet.json").write_text(json.dumps(self._kubelet_settings()))

    def _pod_network(self) -> dict[str, object]:
        bridge = {
            "type": "bridge",
            "bridge": "pods",
            "isDefaultGateway": True,
            "ipam": {
                "type": "host-local",
                "ranges": [[{"subnet": PODS}]],
                "dataDir": str(self.place / "cni-addresses"),
            },
        }
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _kubelet_settings(self) -> dict[str, object]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": NODE_ADDRESS,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},  # nobody else is in this network
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": self.cgroup,
            "enforceNodeAllocatable": [],
            "failSwapOn": False,
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            # A full disk of the machine is no matter of the tests.
            "evictionHard": {"nodefs.available": "0%", "imagefs.available": "0%"},
            "imageGCHighThresholdPercent": 100,
            "nodeStatusUpdateFrequency": "2s",
            "syncFrequency": "5s",
        }

    def _kubelet(self, kubeconfig: Path) -> list[str]:
        return [
            str(self.programs / "kubelet"),
            f"--config={self.place / 'kubelet.json'}",
            f"--kubeconfig={kubeconfig}",
            f"--hostname-override={NAME}",
            f"--node-ip={NODE_ADDRESS}",
            f"--root-dir={self.place / 'kubelet'}",
            f"--cert-dir={self.place / 'kubelet' / 'pki'}",
            "--container-runtime=remote",
            f"--container-runtime-endpoint=unix://{self.socket}",
            f"--image-service-endpoint=unix://{self.socket}",
        ]


def _is_ready(plane: ControlPlane) -> bool:
    status = json.loads(plane.ask(f"/api/v1/nodes/{NAME}")).get("status", {})
    conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
    return conditions.get("Ready") == "True"
