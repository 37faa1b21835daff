"""etcd, the API server, the controllers and the scheduler."""

from __future__ import annotations

import json
import secrets
import ssl
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path
from subprocess import DEVNULL

from addresses import API, NODE_ADDRESS, SERVICES
from kubeconfig import kubeconfig
from parts import Parts
from waiting import until

ETCD = "http://127.0.0.1:2379"


class ControlPlane:
    def __init__(self, place: Path, programs: Path, parts: Parts) -> None:
        self.place = place
        self.programs = programs
        self.parts = parts
        self.certificates = place / "certificates"
        self.kubeconfig = place / "admin.kubeconfig"
        self._token = secrets.token_hex(16)

    def start(self) -> None:
        self._write_secrets()
        self.parts.start("etcd", self._etcd())
        self.parts.start("kube-apiserver", self._api_server())
        self._until("the API server", lambda: self.ask("/readyz") == "ok", "kube-apiserver")
        common = ["--leader-elect=false", f"--kubeconfig={self.kubeconfig}", "--port=0"]
        self.parts.start("kube-controller-manager", self._controllers(common))
        self.parts.start("kube-scheduler", [str(self.programs / "kube-scheduler"), *common])
        account = "/api/v1/namespaces/default/serviceaccounts/default"
        self._until(
            "the controllers",
            lambda: "secrets" in json.loads(self.ask(account)),
            "kube-controller-manager",
        )

    def ask(self, path: str) -> str:
        """What the API server answers; empty when it does not, or says no."""
        request = urllib.request.Request(API + path)
        request.add_header("Authorization", f"Bearer {self._token}")
        try:
            trust = ssl.create_default_context(cafile=str(self.certificates / "apiserver.crt"))
            with urllib.request.urlopen(request, context=trust, timeout=10) as answer:
                return str(answer.read().decode())
        except OSError:
            return "{}"

    def _until(self, what: str, condition: Callable[[], object], part: str) -> None:
        until(what, condition, lambda: self.parts.check(part))

    def _write_secrets(self) -> None:
        self.certificates.mkdir()
        key = self.certificates / "accounts.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, stderr=DEVNULL)
        tokens = self.place / "tokens.csv"
        tokens.write_text(f'{self._token},admin,admin,"system:masters"\n')
        tokens.chmod(0o600)
        self.kubeconfig.write_text(
            kubeconfig(self.certificates / "apiserver.crt", token=self._token)
        )
        self.kubeconfig.chmod(0o600)

    def _etcd(self) -> list[str]:
        peers = "http://127.0.0.1:2380"
        return [
            "etcd",
            f"--data-dir={self.place / 'etcd'}",
            "--unsafe-no-fsync",  # the cluster does not outlive the machine
            f"--listen-client-urls={ETCD}",
            f"--advertise-client-urls={ETCD}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
        ]

    def _api_server(self) -> list[str]:
        key = self.certificates / "accounts.key"
        return [
            str(self.programs / "kube-apiserver"),
            f"--etcd-servers={ETCD}",
            "--secure-port=443",
            f"--advertise-address={NODE_ADDRESS}",
            f"--service-cluster-ip-range={SERVICES}",
            "--endpoint-reconciler-type=none",
            f"--cert-dir={self.certificates}",
            f"--token-auth-file={self.place / 'tokens.csv'}",
            "--anonymous-auth=false",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--kubelet-preferred-address-types=InternalIP",
        ]

    def _controllers(self, common: list[str]) -> list[str]:
        return [
            *(str(self.programs / "kube-controller-manager"), *common),
            f"--service-account-private-key-file={self.certificates / 'accounts.key'}",
            f"--root-ca-file={self.certificates / 'apiserver.crt'}",
            "--use-service-account-credentials=true",
        ]
