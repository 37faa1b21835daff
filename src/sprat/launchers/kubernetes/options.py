"""Workers as pods: what a pool may say about them."""

from __future__ import annotations

import re

from sprat.core import payload
from sprat.core.errors import InvalidInput
from sprat.core.record import Record
from sprat.launchers.kubernetes import pod_template

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

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
    mode: str = POD  # what is made for each worker; or the scale of a Deployment of yours
    image: str = ""  # has sprat and the user's code in it
    directory: str = "."  # inside the pod: where the handler is imported from
    namespace: str | None = None  # None: that of the context, or of our own pod
    context: str | None = None  # of the kubeconfig; None: our own pod's rights, or the current one
    secret: str | None = None  # a Secret with SPRAT_URL, and SPRAT_API_KEY where there is one
    service_account: str | None = None
    cpu: str | int | float | None = None  # what is asked for
    memory: str | int | None = None
    cpu_limit: str | int | float | None = None  # what it may use
    memory_limit: str | int | None = None
    image_pull_policy: str | None = None
    labels: Mapping[str, str] = {}
    node_selector: Mapping[str, str] = {}
    host_network: bool = False
    grace_seconds: float = 3600.0  # a pod that is deleted has so long to finish its job
    ttl_seconds: float = 60.0  # a finished pod stays so long, for somebody to look at
    template: Mapping[str, Any] = {}  # a pod template that ours is merged into
    owner: str | None = None  # a Deployment: deleted, its workers are deleted too
    deployment: str | None = None  # of mode deployment: whose scale is set
    group: str | None = None  # of mode deployment: only places of this machine group are its own


def _text(value: object, name: str) -> None:
    if not isinstance(value, str) or not value or not value.isprintable():
        raise InvalidInput(f"{name} must be a text, not {value!r}")


def _image(value: object, name: str) -> None:
    _text(value, name)
    if " " in str(value):
        raise InvalidInput(f"{name} must be the name of an image, without blanks, not {value!r}")


def _name(value: object, name: str) -> None:
    if not isinstance(value, str) or not NAME.fullmatch(value):
        raise InvalidInput(
            f"{name} must be a Kubernetes name (small letters, digits, -), not {value!r}"
        )


def _one_of(*words: str) -> Callable[[object, str], None]:
    def check(value: object, name: str) -> None:
        if value not in words:
            raise InvalidInput(f"{name} must be {' or '.join(words)}, not {value!r}")

    return check


def _quantity(value: object, name: str) -> None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    if not is_number and not (isinstance(value, str) and QUANTITY.fullmatch(value)):
        raise InvalidInput(f"{name} must be a quantity such as 2, 500m or 1Gi, not {value!r}")


def _labels(value: object, name: str) -> None:
    if not isinstance(value, dict):
        raise InvalidInput(f"{name} must be a mapping from label to value, not {value!r}")
    for key, text in value.items():
        if not isinstance(key, str) or not LABEL_KEY.fullmatch(key):
            raise InvalidInput(f"{name}: Kubernetes allows no label {key!r}")
        if key.startswith("sprat/"):
            raise InvalidInput(f"{name}: {key} is ours: choose another label")
        if not isinstance(text, str) or not LABEL_VALUE.fullmatch(text):
            raise InvalidInput(f"{name}.{key} must be a label's value (a text), not {text!r}")


def _flag(value: object, name: str) -> None:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} must be true or false, not {value!r}")


def _seconds(value: object, name: str) -> None:
    payload.seconds(value, name)


CHECKS: dict[str, Callable[[object, str], object]] = {
    "mode": _one_of(*MODES),
    "image": _image,
    "directory": _text,
    "namespace": _name,
    "context": _text,
    "secret": _name,
    "service_account": _name,
    "cpu": _quantity,
    "memory": _quantity,
    "cpu_limit": _quantity,
    "memory_limit": _quantity,
    "image_pull_policy": _one_of(*PULL_POLICIES),
    "labels": _labels,
    "node_selector": _labels,
    "host_network": _flag,
    "grace_seconds": _seconds,
    "ttl_seconds": _seconds,
    "template": pod_template.check,
    "owner": _name,
    "deployment": _name,
    "group": payload.label,
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
