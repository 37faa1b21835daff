"""Workers as pods: what a pool may say about them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sprat.core import fields, payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.launchers.kubernetes import pod_template

POD = "pod"
JOB = "job"
DEPLOYMENT = "deployment"
MODES = (POD, JOB, DEPLOYMENT)
PULL_POLICIES = ("Always", "IfNotPresent", "Never")
FILES = ("template",)  # in sprat.yml it may be the name of a file, whose content is kept
OF_A_DEPLOYMENT = ("mode", "deployment", "namespace", "context", "group")

NAME = re.compile(r"[a-z0-9]([-.a-z0-9]{0,251}[a-z0-9])?")
QUANTITY = re.compile(r"[0-9]+(\.[0-9]+)?(m|k|M|G|T|Ki|Mi|Gi|Ti)?")
LABEL_KEY = re.compile(r"([-.a-z0-9]{1,253}/)?[A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-._A-Za-z0-9]{0,61}[A-Za-z0-9])?)?")


class Options(Record):
    """The defaults; FIELDS has what each of them means."""

    mode: str = POD
    image: str = ""
    directory: str = "."
    namespace: str | None = None
    context: str | None = None
    secret: str | None = None
    service_account: str | None = None
    cpu: str | int | float | None = None
    memory: str | int | None = None
    cpu_limit: str | int | float | None = None
    memory_limit: str | int | None = None
    image_pull_policy: str | None = None
    labels: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    host_network: bool = False
    grace_seconds: float = 3600.0
    ttl_seconds: float = 60.0
    template: Mapping[str, Any] = {}
    owner: str | None = None
    deployment: str | None = None
    group: str | None = None


def _is_quantity(value: object) -> bool:
    if isinstance(value, str):
        return QUANTITY.fullmatch(value) is not None
    return fields.is_number(value) and value > 0


def _label(key: str, value: object, name: str) -> None:
    if not LABEL_KEY.fullmatch(key):
        raise InvalidInput(f"{name}: Kubernetes allows no label {key!r}")
    if key.startswith("sprat/"):
        raise InvalidInput(f"{name}: {key} is ours: choose another label")
    if not isinstance(value, str) or not LABEL_VALUE.fullmatch(value):
        raise InvalidInput(f"{name}.{key} must be a label's value (a text), not {value!r}")


KUBERNETES_NAME = fields.matching(NAME, "a Kubernetes name (small letters, digits, -)")
AMOUNT = fields.kind("a quantity such as 2, 500m or 1Gi", _is_quantity, type=["string", "number"])
LABELS = fields.mapping("from label to value", _label, values={"type": "string"})

FIELDS = {
    "mode": fields.choice(*MODES).means(
        "`pod`: a pod for each worker; `job`: a Job for each; `deployment`: the scale of a "
        "Deployment of yours"
    ),
    "image": fields.line()
    .also("the name of an image, without blanks", lambda value: " " not in value)
    .means("has sprat and your code in it"),
    "directory": fields.line().means(
        "inside the pod: where the handler is imported from and the command runs"
    ),
    "namespace": KUBERNETES_NAME.means(
        "where pods are made; default: that of the context, or of the pod that runs the pass"
    ),
    "context": fields.line().means(
        "of the kubeconfig; default: the pod's own service account, or the current context"
    ),
    "secret": KUBERNETES_NAME.means(
        "the name of a Secret whose keys become variables: `SPRAT_URL`, and `SPRAT_API_KEY` where "
        "the store is a server"
    ),
    "service_account": KUBERNETES_NAME.means(
        "of the workers' pods, for jobs that use the cluster; without one they get no token"
    ),
    "cpu": AMOUNT.means("what a pod requests"),
    "memory": AMOUNT.means("what a pod requests"),
    "cpu_limit": AMOUNT.means("what a pod may use"),
    "memory_limit": AMOUNT.means("what a pod may use"),
    "image_pull_policy": fields.choice(*PULL_POLICIES).means("when nodes fetch the image"),
    "labels": LABELS.means("labels of the pods; `sprat/*` are reserved"),
    "node_selector": LABELS.means("labels of the nodes that pods may run on"),
    "host_network": fields.flag().means("pods share the network of their node"),
    "grace_seconds": fields.seconds().means(
        "a pod that is deleted has this long to finish its job"
    ),
    "ttl_seconds": fields.seconds().means("a pod that has ended stays this long"),
    "template": fields.custom(
        "a pod template, or the name of a YAML file with one",
        pod_template.check,
        type=["object", "string"],
    ).means("a pod template that sprat's own is merged into"),
    "owner": KUBERNETES_NAME.means(
        "a Deployment, such as the controller's: when it is deleted, its workers are too"
    ),
    "deployment": KUBERNETES_NAME.means("of mode deployment: its name"),
    "group": fields.optional(
        fields.custom("1 to 128 printable characters", payload.label, type="string")
    ).means("of mode deployment: its pods are for this machine group"),
}


def check(options: Options) -> None:
    if options.mode == DEPLOYMENT:
        _check_deployment(options)
        return
    if not options.image and not pod_template.image(options.template):
        raise InvalidInput("it needs an image: set launcher_options.image")
    for name in ("deployment", "group"):
        if getattr(options, name) is not None:
            raise InvalidInput(f"{name} is for mode: deployment, not for mode: {options.mode}")


def _check_deployment(options: Options) -> None:
    if options.deployment is None:
        raise InvalidInput(
            "mode: deployment needs the name of one: set launcher_options.deployment"
        )
    for name, default in Options._defaults.items():
        if name not in OF_A_DEPLOYMENT and getattr(options, name) != default:
            raise InvalidInput(f"with mode: deployment the Deployment says {name}, not the pool")
