"""Workers as containers of a Docker engine."""

from __future__ import annotations

import os
from collections.abc import Sequence

from sprat.core.errors import LaunchFailed, SpratError
from sprat.core.model import PoolSettings, WorkerRecord
from sprat.launchers import option_checks
from sprat.launchers.docker.containers import ContainerOrder
from sprat.launchers.docker.engine import Engine
from sprat.launchers.docker.options import Options
from sprat.launchers.remote import RemoteLauncher


class DockerLauncher(RemoteLauncher):
    """Each call opens its own connection to the engine: a pass is rare."""

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        from sprat.launchers.docker.containers import order

        options = _options(settings)
        with _engine(options) as engine:
            wanted = order(url, pool, settings=settings, options=options, engine=engine.mark())
            if options.pull == "always":
                engine.pull(options.image)
            for place, worker_id in enumerate(worker_ids):
                try:
                    _start(engine, wanted, worker_id)
                except SpratError as error:  # the others would meet the same
                    raise LaunchFailed(str(error), tuple(worker_ids[place:])) from error

    def tend(
        self, url: str, pool: str, settings: PoolSettings, workers: Sequence[WorkerRecord]
    ) -> dict[str, str]:
        from sprat.launchers.docker.reconcile import tend

        options = _options(settings)
        with _engine(options) as engine:
            return tend(engine, url, pool, workers=workers, stop_seconds=options.stop_seconds)

    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        """Not from inside a worker: a container has no engine, that is for those outside."""
        if not os.environ.get("SPRAT_PLACE"):
            super().start_pass(url, pool, settings)

    def complaint(self, settings: PoolSettings) -> str | None:
        options = _options(settings)
        with _engine(options) as engine:
            if engine.has_image(options.image):
                return None
            if options.pull == "never":
                return f"the engine has no image {options.image}, and pull is never"
            return None


def _options(settings: PoolSettings) -> Options:
    options: Options = option_checks.options("docker", settings.launcher_options)
    return options


def _engine(options: Options) -> Engine:
    from sprat.launchers.docker.engine import Engine

    return Engine(options.host)


def _start(engine: Engine, order: ContainerOrder, worker_id: str) -> None:
    """Make and start one container. The name says whose it is: a second one cannot be made, but
    one that was made and not started, because its maker was killed in between, is started."""
    from sprat.launchers.docker.engine import AlreadyThere

    name = order.name(worker_id)
    try:
        _create(engine, order, worker_id)
    except AlreadyThere:
        if engine.look(name).get("Status") != "created":
            return
    try:
        engine.start(name)
    except SpratError:
        engine.remove(name)
        raise


def _create(engine: Engine, order: ContainerOrder, worker_id: str) -> None:
    from sprat.launchers.docker.engine import NoImage

    options = order.options
    try:
        engine.create(order, worker_id)
    except NoImage:
        if options.pull == "never":
            raise SpratError(
                f"the engine has no image {options.image}, and pull is never: load it there"
            ) from None
        engine.pull(options.image)
        engine.create(order, worker_id)
