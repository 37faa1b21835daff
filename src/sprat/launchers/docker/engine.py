"""One Docker engine, asked through its SDK: the calls that are needed, and errors in our words."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, Self

from sprat.core.errors import MissingExtra, SpratError
from sprat.core.record import Record
from sprat.launchers.docker import containers

TIMEOUT_SECONDS = 60.0  # an engine under load takes its time to start a container
LOG_LINES = 10
LOG_CHARS = 2000


class NoImage(SpratError):
    """The engine has no such image."""


class NoContainer(SpratError):
    """The engine has no container of this name (any more)."""


class AlreadyThere(SpratError):
    """Another process made the container, or does with it what was asked for."""


class Container(Record):
    """One of ours, as the engine lists it."""

    name: str
    worker_id: str
    state: str  # created, running, paused, restarting, removing, exited or dead
    created_at: float


class Engine:
    def __init__(self, host: str | None) -> None:
        self._sdk = _sdk()
        self._host = host
        address = {"base_url": host} if host else {}
        address = {**self._sdk.utils.kwargs_from_env(), **address}
        self._address = address.get("base_url", "the usual address")
        self._client: Any = None
        self._client = self._tried(
            lambda: self._sdk.APIClient(**address, version="auto", timeout=TIMEOUT_SECONDS)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._client.close()

    def mark(self) -> str:
        """A short name that no other engine has."""
        return str(self._tried(self._client.info)["ID"])[:12]

    # -- images ---------------------------------------------------------------------------------

    def has_image(self, image: str) -> bool:
        try:
            self._tried(lambda: self._client.inspect_image(image))
        except NoImage:
            return False
        return True

    def pull(self, image: str) -> None:
        """Fetch an image from its registry, however long it takes."""
        try:
            self._tried(lambda: self._pulled(image))
        except SpratError as error:
            raise SpratError(f"the image {image} cannot be pulled: {error}") from error

    def _pulled(self, image: str) -> None:
        repository, tag = self._sdk.utils.parse_repository_tag(image)
        events = self._client.pull(repository, tag=tag or "latest", stream=True, decode=True)
        for line in events:  # an error may come late
            if "error" in line:
                raise SpratError(_one_line(line["error"]))

    # -- containers -----------------------------------------------------------------------------

    def create(self, order: containers.ContainerOrder, worker_id: str) -> None:
        specification = containers.specification(self._client, order, worker_id)
        self._tried(lambda: self._client.create_container(**specification))

    def start(self, name: str) -> None:
        self._tried(lambda: self._client.start(name))

    def list(self, url: str, pool: str) -> list[Container]:
        """Every container of this pool, whatever has become of it."""
        labels = [f"{label}={value}" for label, value in containers.labels(url, pool).items()]
        labels.append(containers.WORKER)
        rows = self._tried(lambda: self._client.containers(all=True, filters={"label": labels}))
        return [
            Container(
                name=row["Names"][0].lstrip("/"),
                worker_id=row["Labels"][containers.WORKER],
                state=row["State"],
                created_at=float(row["Created"]),
            )
            for row in rows
            if row["Names"]  # none: it is being removed
        ]

    def look(self, name: str) -> dict[str, Any]:
        """The state of one container: Status, ExitCode, OOMKilled, Error; nothing: it is gone."""
        try:
            container = self._tried(lambda: self._client.inspect_container(name))
        except NoContainer:
            return {}
        state: dict[str, Any] = container["State"]
        return state

    def last_words(self, name: str) -> str:
        """The end of what it wrote; nothing when the engine keeps no logs."""
        try:
            log = self._tried(lambda: self._client.logs(name, tail=LOG_LINES))
        except SpratError:
            return ""
        return str(log.decode("utf-8", "replace")).strip()[-LOG_CHARS:]

    def remove(self, name: str) -> None:
        self._somehow(lambda: self._client.remove_container(name, force=False, v=True))

    def signal(self, name: str, signal: str) -> None:
        self._somehow(lambda: self._client.kill(name, signal))

    def unpause(self, name: str) -> None:
        self._somehow(lambda: self._client.unpause(name))

    def _somehow(self, call: Callable[[], object]) -> None:
        """Done, by this process or by another."""
        try:
            self._tried(call)
        except (NoContainer, AlreadyThere):
            pass

    def _tried(self, call: Callable[[], Any]) -> Any:
        """What the engine answers; its errors as one sentence."""
        errors = self._sdk.errors
        try:
            return call()
        except errors.ImageNotFound as error:
            raise NoImage(_one_line(error.explanation)) from error
        except errors.NotFound as error:
            raise NoContainer(_one_line(error.explanation)) from error
        except errors.APIError as error:
            kind = AlreadyThere if error.status_code == 409 else SpratError
            raise kind(f"the Docker engine says: {_one_line(error.explanation)}") from error
        except (errors.DockerException, OSError) as error:
            raise SpratError(
                f"the Docker engine at {self._address} cannot be asked: {_cause(error)}"
            ) from error


def _sdk() -> Any:
    try:
        import docker
    except ImportError as error:
        if (error.name or "").partition(".")[0] != "docker":
            raise
        raise MissingExtra("docker is not installed: pip install 'sprat[docker]'") from None
    return docker


def _cause(error: BaseException) -> str:
    """What is at the bottom of it: libraries wrap a refused connection four times."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        inner = [part for part in cause.args if isinstance(part, BaseException)]
        cause = inner[0] if inner else cause.__cause__ or cause.__context__
    return _one_line(str(error))


def _one_line(text: object) -> str:
    return " ".join(str(text or "nothing").split())
