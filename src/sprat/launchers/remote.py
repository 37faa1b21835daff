"""What launchers have in common whose workers are not processes of this machine.

Their workers cannot start one another, so another process runs the passes: a push, a trigger, or a
controller's loop.
"""

from __future__ import annotations

import sys

from sprat.core.runtime import runtime
from sprat.fleet.launcher import Launcher
from sprat.launchers.process.launcher import environment, run_apart

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.core.model import PoolSettings


_attended_at: dict[tuple[str, str], float] = {}  # by store and pool, in this process


class RemoteLauncher(Launcher):
    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        run_apart([sys.executable, "-P", "-m", "sprat", "check", pool], environment(url, settings))

    def attend(self, url: str, pool: str, settings: PoolSettings) -> None:
        """One pass per lease: it asks the engine or cluster which workers are left."""
        now = runtime.monotonic()
        if now - _attended_at.get((url, pool), -1e9) >= 2 * settings.heartbeat_seconds:
            _attended_at[url, pool] = now
            self.start_pass(url, pool, settings)
