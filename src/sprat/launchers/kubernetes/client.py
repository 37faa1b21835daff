"""A connection to a cluster: six verbs, and the API's complaints in one sentence each."""

from __future__ import annotations

import functools
import hashlib
import os

from sprat.core.errors import InvalidInput, MissingExtra, SpratError
from sprat.core.record import Record

try:
    import httpx2
    import lightkube
    from lightkube.config.kubeconfig import SERVICE_ACCOUNT, KubeConfig
    from lightkube.core.exceptions import ApiError, ConfigError
    from lightkube.core.resource import ApiInfo, ResourceDef
    from lightkube.generic_resource import GenericNamespacedResource
    from lightkube.types import CascadeType, PatchType
except ImportError as error:
    raise MissingExtra(f"{error.name} is not installed: pip install 'sprat[kubernetes]'") from None

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Self, TypeVar

    T = TypeVar("T")

TIMEOUT_SECONDS = 10.0
LONGEST_MESSAGE = 500  # characters of what the API says
ADMISSION = ("exceeded quota", "violates PodSecurity", "is forbidden: minimum", "is forbidden: max")


class ObjectKind(Record):
    """A kind of object in a namespace."""

    group: str
    version: str
    kind: str
    plural: str
    part: str = ""  # a subresource

    @property
    def resource(self) -> str:
        return f"{self.plural}/{self.part}" if self.part else self.plural


POD = ObjectKind(group="", version="v1", kind="Pod", plural="pods")
EVENT = ObjectKind(group="", version="v1", kind="Event", plural="events")
JOB = ObjectKind(group="batch", version="v1", kind="Job", plural="jobs")
DEPLOYMENT = ObjectKind(group="apps", version="v1", kind="Deployment", plural="deployments")
SCALE = DEPLOYMENT.replace(part="scale")


class Cluster:
    """One namespace of one cluster. Every request goes through `_do`, and names its verb as in
    a role."""

    def __init__(self, context: str | None = None, namespace: str | None = None) -> None:
        try:
            config = _config(context)
            if namespace is None:
                namespace = config.namespace
            timeout = httpx2.Timeout(TIMEOUT_SECONDS)
            self._client = lightkube.Client(config=config, namespace=namespace, timeout=timeout)
        except (ConfigError, KeyError, OSError, ValueError, AssertionError) as error:
            raise InvalidInput(f"no cluster can be reached: {_why(error)}") from None
        self.namespace = namespace
        self._server = config.cluster.server
        self.mark = _mark(config)

    def create(self, kind: ObjectKind, manifest: Mapping[str, Any]) -> bool:
        """False when there is one of that name already."""
        resource = _resource(kind)(manifest)
        try:
            self._do("create", kind, lambda: self._client.create(resource))
        except Refused as refusal:
            if refusal.code == 409:
                return False
            raise
        return True

    def get(self, kind: ObjectKind, name: str) -> dict[str, Any]:
        resource = self._do("get", kind, lambda: self._client.get(_resource(kind), name))
        return dict(resource)

    def list(
        self,
        kind: ObjectKind,
        *,
        labels: Mapping[str, str] | None = None,
        fields: Mapping[str, str] | None = None,
    ) -> list[dict[str, Any]]:
        chosen: dict[str, Any] = {"labels": dict(labels or {}), "fields": dict(fields or {})}

        def read() -> list[dict[str, Any]]:
            return [dict(resource) for resource in self._client.list(_resource(kind), **chosen)]

        return self._do("list", kind, read)

    def delete(self, kind: ObjectKind, name: str) -> None:
        """With what belongs to it; its pods have their grace. Nothing, when it is gone already."""
        cascade = CascadeType.BACKGROUND
        try:
            self._do(
                "delete", kind, lambda: self._client.delete(_resource(kind), name, cascade=cascade)
            )
        except Refused as refusal:
            if refusal.code != 404:
                raise

    def patch(self, kind: ObjectKind, name: str, change: Mapping[str, Any]) -> None:
        """Merge a change into it. With a resourceVersion, Refused (409) if it is another by now."""
        self._do(
            "patch",
            kind,
            lambda: self._client.patch(
                _resource(kind), name, dict(change), patch_type=PatchType.MERGE
            ),
        )

    def _do(self, verb: str, kind: ObjectKind, step: Callable[[], T]) -> T:
        try:
            return step()
        except ApiError as error:
            raise self._refusal(error, verb, kind) from None
        except (httpx2.HTTPError, ConfigError, OSError) as error:
            raise SpratError(
                f"the cluster's API at {self._server} cannot be reached: {_why(error)}"
            ) from None

    def _refusal(self, error: ApiError, verb: str, kind: ObjectKind) -> Refused:
        code = error.status.code or 0
        text = _one_line(error.status.message or error.status.reason or f"code {code}")
        request = f"{verb} {kind.resource} in the namespace {self.namespace}"
        if code == 401:
            reason = f"the cluster does not know us (401): renew the login of {self._server}"
        elif code == 403 and not any(words in text for words in ADMISSION):
            reason = f"the cluster does not let us {request}: grant it with a role ({text})"
        else:
            reason = (
                f"the cluster refuses to {request}: {text.partition(' is forbidden: ')[2] or text}"
            )
        return Refused(reason, code)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()


class Refused(SpratError):
    """The API understood, and said no."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@functools.cache
def _resource(kind: ObjectKind) -> Any:
    """Objects as plain mappings: nothing of a newer API is lost on the way. Not registered with
    the library, where the program that we are in may have classes of its own for them."""
    whole = ResourceDef(kind.group, kind.version, kind.kind)
    verbs = ["delete", "get", "list", "patch", "post"]
    about = ApiInfo(resource=whole, plural=kind.plural, verbs=verbs)
    if kind.part:
        about = ApiInfo(
            resource=whole, plural=kind.plural, verbs=verbs, parent=whole, action=kind.part
        )
    return type(kind.kind, (GenericNamespacedResource,), {"_api_info": about})


def _config(context: str | None) -> Any:
    """The kubeconfig, where one is named or a context of it; else a pod's own rights count, and
    then the kubeconfig in its usual place."""
    named = os.environ.get("KUBECONFIG")
    if context is None and not named and os.path.exists(f"{SERVICE_ACCOUNT}/token"):
        return KubeConfig.from_service_account().get()
    path = named or "~/.kube/config"
    if not os.path.exists(os.path.expanduser(path)):
        raise ConfigError(f"there is no {path}: set KUBECONFIG, or run in a pod")
    config = KubeConfig.from_file(path).get(context)
    if config is not None and config.user is None:
        raise ConfigError(f"the context {config.context_name} of {path} has no user")
    return config


def _mark(config: Any) -> str:
    """Eight letters that tell clusters apart: made of what signs its API's certificate, so that
    they are the same within the cluster and outside of it."""
    cluster = config.cluster
    cluster_text: bytes = str(cluster.server).encode()
    if cluster.certificate_auth_data:
        import base64

        cluster_text = base64.b64decode(cluster.certificate_auth_data)
    elif cluster.certificate_auth:
        with open(config.abs_file(cluster.certificate_auth), "rb") as file:
            cluster_text = file.read()
    return hashlib.sha256(b"".join(cluster_text.split())).hexdigest()[:8]


def _why(error: Exception) -> str:
    text = _one_line(str(error))
    if isinstance(error, KeyError):
        return f"the kubeconfig has no {text}"
    return text or type(error).__name__


def _one_line(text: str) -> str:
    return " ".join(text.split())[:LONGEST_MESSAGE]
