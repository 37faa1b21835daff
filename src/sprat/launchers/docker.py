"""Workers as containers of a Docker engine."""

from __future__ import annotations

from sprat.launchers.elsewhere import Elsewhere


class DockerLauncher(Elsewhere):
    pass
