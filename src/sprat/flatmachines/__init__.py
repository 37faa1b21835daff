"""The flatmachines adapter: its YAML and hooks stay, with a sprat store underneath.

    from sprat.flatmachines import Backends, SpratHooks, SpratInvoker, registry

`Backends` has flatmachines' two interfaces over any store, `SpratHooks` its distributed worker's
actions, `SpratInvoker` launches through reservations, so that no machine starts more workers than
its pool allows. `python -m sprat.flatmachines` runs a machine with all of them.
"""

from __future__ import annotations

from sprat.core.errors import MissingExtra

try:
    from sprat.flatmachines.backends import Backends, RegistrationBackend, WorkBackend
    from sprat.flatmachines.hooks import SpratHooks, registry
    from sprat.flatmachines.invoker import SpratInvoker
    from sprat.flatmachines.runner import processor, run
except ModuleNotFoundError as error:
    if error.name is None or not error.name.startswith("flatmachines"):
        raise
    raise MissingExtra(
        "flatmachines is not installed: pip install 'sprat[flatmachines]'"
    ) from error

__all__ = [
    "Backends",
    "RegistrationBackend",
    "SpratHooks",
    "SpratInvoker",
    "WorkBackend",
    "processor",
    "registry",
    "run",
]
