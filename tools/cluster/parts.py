"""The programs that a cluster is made of: each started from a file that says how, with a log."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from waiting import until


class Parts:
    """The running programs of the cluster in one directory."""

    def __init__(self, place: Path) -> None:
        self.place = place
        for name in ("parts", "logs"):
            (place / name).mkdir(exist_ok=True)

    def start(self, name: str, command: list[str]) -> None:
        """Run it beside us. It lives until it is stopped, or its process namespace ends."""
        append = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        streams = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, str(self.log(name)), append, 0o644),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        pid = os.posix_spawnp(
            command[0],
            command,
            os.environ,
            file_actions=streams,
            setsid=True,
            setsigdef=[signal.SIGPIPE],  # Python ignores it, and so would every container
        )
        about = {"pid": pid, "command": command}
        self._file(name).write_text(json.dumps(about))

    def stop(self, name: str, how: int = signal.SIGTERM) -> list[str]:
        """End it and wait until it is gone. The command that starts it again."""
        about = json.loads(self._file(name).read_text())
        os.kill(about["pid"], how)
        until(f"the end of {name}", lambda: not is_alive(about["pid"]))
        return list(about["command"])

    def check(self, name: str) -> None:
        """Fail with the end of its log if it has ended."""
        if not self.is_running(name):
            raise RuntimeError(self.last_words(name))

    def is_running(self, name: str) -> bool:
        return is_alive(json.loads(self._file(name).read_text())["pid"])

    def last_words(self, name: str) -> str:
        last = self.log(name).read_text(errors="replace").splitlines()[-20:]
        return "\n".join([f"{name} ended:", *last])

    def log(self, name: str) -> Path:
        return self.place / "logs" / f"{name}.log"

    def _file(self, name: str) -> Path:
        return self.place / "parts" / f"{name}.json"


def is_alive(pid: int) -> bool:
    """Does it run? What has ended and was not yet cleared away does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"
