"""Extension points: what a lower layer uses from a higher one, by name, imported on first use.

Each point maps names to `module` or `module:attribute`. These are the only places where the code of
one layer knows the name of a higher one; `tests/test_layout.py` checks that each of them exists.
"""

from __future__ import annotations

from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

POINTS = {
    "policy": {
        "slo": "sprat.scaling.slo.policy",
        "queue-depth": "sprat.scaling.queue_depth",
        "pending-per-worker": "sprat.scaling.pending_per_worker",
        "headroom": "sprat.scaling.headroom",
        "step": "sprat.scaling.step",
        "latency": "sprat.scaling.latency",
        "fixed": "sprat.scaling.fixed",
        "predictive": "sprat.scaling.predictive.policy",
    },
    "launcher": {
        "process": "sprat.launchers.process.launcher:ProcessLauncher",
        "docker": "sprat.launchers.docker.launcher:DockerLauncher",
        "kubernetes": "sprat.launchers.kubernetes.launcher:KubernetesLauncher",
    },
    "check": {  # of settings whose rules are in a higher layer
        "policies": "sprat.scaling.policies",
        "launchers": "sprat.launchers.option_checks",
    },
    "machine": {  # a pool's jobs, and launched workers, may run a YAML machine
        "processor": "sprat.machines.runtime.processing:processor",
        "crew": "sprat.machines.runtime.launched:MachineCrew",
    },
    "event": {
        "work_added": "sprat.triggers.events:work_added",
        "happened": "sprat.triggers.events:happened",
        "finish": "sprat.triggers.events:finish",
    },
    "idle": {"is_needed": "sprat.fleet.idle_rule:is_needed"},
}


def names(point: str) -> tuple[str, ...]:
    """Every name of an extension point, in the order of its table."""
    return tuple(POINTS[point])


def load(point: str, name: str) -> Any:
    """The module or attribute that a name stands for; InvalidInput for an unknown name."""
    if name not in POINTS[point]:
        raise InvalidInput(f"unknown {point} {name!r}: use {' or '.join(names(point))}")
    module, _, attribute = POINTS[point][name].partition(":")
    loaded = __import__(module, fromlist=["__name__"])
    return getattr(loaded, attribute) if attribute else loaded
