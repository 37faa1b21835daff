"""Workers as pods of a Kubernetes cluster."""

from __future__ import annotations

from sprat.launchers.elsewhere import Elsewhere


class KubernetesLauncher(Elsewhere):
    pass
