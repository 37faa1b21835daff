"""The Kubernetes that `make test-kubernetes` started around the tests, and a namespace of it."""

from __future__ import annotations

import base64
import signal
import ssl
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import patience
from lightkube import ApiError, Client, KubeConfig
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, Secret, ServiceAccount

sys.path.append(str(Path(__file__).parents[2] / "tools" / "cluster"))

from addresses import NODE_ADDRESS
from kubeconfig import kubeconfig
from parts import Parts

IMAGE = "localhost/sprat:test"
NODE = NODE_ADDRESS  # here pods that have a network of their own reach the tests
# A kubelet of 1.20 takes its time to clear a pod away, and the machine may be busy with others.
PATIENCE = 120.0
until = partial(patience.eventually, within=PATIENCE)
# This server is of 1.20. What became stable later is known to it under these names.
EARLIER = {
    "batch/v1 CronJob": "batch/v1beta1",
    "policy/v1 PodDisruptionBudget": "policy/v1beta1",
    "autoscaling/v2 HorizontalPodAutoscaler": "autoscaling/v2beta2",
}
API_SERVER = "kube-apiserver"
FINISHED = ("Succeeded", "Failed")


class Cluster:
    def __init__(self, place: Path) -> None:
        self._place = place
        self._parts = Parts(place)
        self.client = self.open(place / "admin.kubeconfig")

    def open(self, kubeconfig: Path, namespace: str | None = None) -> Client:
        timeout = httpx2.Timeout(30.0)
        return Client(KubeConfig.from_file(kubeconfig), namespace=namespace, timeout=timeout)

    def restart_api_server(self, meanwhile: Callable[[], object] = lambda: None) -> None:
        """Kill the API server, do something while there is none, and start it again. On a busy
        machine it may give up while it starts; whoever runs one starts it again then."""
        command = self._parts.stop(API_SERVER, signal.SIGKILL)
        meanwhile()

        def answers() -> bool:
            if not self._parts.is_running(API_SERVER):
                print(self._parts.last_words(API_SERVER))  # shown when the test fails
                self._parts.start(API_SERVER, command)
            return self._answers()

        until(answers, "the API server")

    def kubeconfig(self, place: Path, *, namespace: str, account: str) -> Path:
        """A file with which one is this service account, and may do no more than it."""
        token = self.token(namespace, account)
        authority = self._place / "certificates" / "apiserver.crt"
        file = place / f"{namespace}-{account}.kubeconfig"
        file.write_text(kubeconfig(authority, token=token, namespace=namespace))
        return file

    def container_of(self, pod: str) -> str:
        """As containerd knows it, at once: a busy kubelet tells it late. '' while there is none."""
        kind, name = "io.cri-containerd.kind", "io.kubernetes.pod.name"
        wanted = f'labels."{kind}"==container,labels."{name}"=={pod}'
        return self._ctr("containers", "list", "--quiet", wanted).strip()

    def kill(self, container: str) -> None:
        self._ctr("tasks", "kill", "--all", "--signal", "SIGKILL", container)

    def _ctr(self, *words: str) -> str:
        address = ("--address", str(self._place / "containerd.sock"), "--namespace", "k8s.io")
        command = ["ctr", *address, *words]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout

    def create(self, manifest: dict[str, Any], *, dry_run: bool = False) -> dict[str, Any]:
        """What was created, or would be. Any kind that the server has will do."""
        wanted = as_known(manifest)
        version, kind = wanted["apiVersion"], wanted["kind"]
        root = f"/apis/{version}" if "/" in version else f"/api/{version}"
        kinds = {one["kind"]: one["name"] for one in reversed(self._ask("GET", root)["resources"])}
        where = f"{root}/namespaces/{wanted['metadata']['namespace']}/{kinds[kind]}"
        return self._ask("POST", where + ("?dryRun=All" if dry_run else ""), wanted)

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        config = self.client.config
        trust = ssl.create_default_context(cafile=config.cluster.certificate_auth)
        bearer = {"Authorization": f"Bearer {config.user.token}"}
        with httpx2.Client(verify=trust, headers=bearer, timeout=30.0) as http:
            answer = http.request(method, config.cluster.server + path, json=body)
        assert answer.is_success, answer.text
        return dict(answer.json())

    def close(self) -> None:
        self.client.close()

    def token(self, namespace: str, account: str) -> str:
        """Of a service account. Its pods can be made only when it has one."""
        return str(until(lambda: self._token(namespace, account), f"a token of {account}"))

    def _token(self, namespace: str, account: str) -> str | None:
        try:
            about = self.client.get(ServiceAccount, account, namespace=namespace)
            for secret in about.secrets or ():
                kept = self.client.get(Secret, str(secret.name), namespace=namespace)
                return base64.b64decode((kept.data or {})["token"]).decode()
        except ApiError as error:
            if error.status.code != 404:
                raise
        return None

    def _answers(self) -> bool:
        try:
            self.client.get(Namespace, "default")
        except (ApiError, httpx2.HTTPError):
            return False
        return True


class Room:
    """A namespace for one test."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        self.cluster = cluster
        self.name = name
        self.client = cluster.client
        self.client.create(Namespace(metadata=ObjectMeta(name=name)))
        cluster.token(name, "default")

    def pods(self) -> list[Pod]:
        """Those that are there and have not finished."""
        every = self.client.list(Pod, namespace=self.name)
        return [pod for pod in every if pod.status and pod.status.phase not in FINISHED]

    def accounts(self) -> list[ServiceAccount]:
        return list(self.client.list(ServiceAccount, namespace=self.name))

    def kill(self, name: str) -> None:
        """End the process of a pod's container, as the kernel does when there is no memory left."""
        found = until(lambda: self.cluster.container_of(name), f"the container of {name}")
        self.cluster.kill(found)

    def leave(self) -> None:
        for pod in self.client.list(Pod, namespace=self.name):
            self.client.delete(Pod, pod.metadata.name, namespace=self.name, grace_period=0)
        self.client.delete(Namespace, self.name)


def as_known(manifest: dict[str, Any]) -> dict[str, Any]:
    """The manifest as this server knows its kind."""
    version = manifest["apiVersion"]
    earlier = EARLIER.get(f"{version} {manifest['kind']}", version)
    return {**manifest, "apiVersion": earlier}
