"""What launchers have in common whose workers are not processes of this machine.

Their workers cannot start one another, so passes are run by whoever may start them: a push, a
trigger, or a controller's loop.
"""

from __future__ import annotations

import sys

from sprat.launcher import Launcher
from sprat.launchers.process import environment, run_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.model import PoolSettings


class Elsewhere(Launcher):
    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        run_apart([sys.executable, "-P", "-m", "sprat", "check", pool], environment(url, settings))
