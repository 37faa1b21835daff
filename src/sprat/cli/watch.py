"""`sprat watch`: waits until nothing of a pool is pending or running, and shows how it goes."""

from __future__ import annotations

import sys
import time

from sprat.cli import blockers
from sprat.cli.arguments import CommandParser, seconds
from sprat.cli.main import DONE, FAILED
from sprat.cli.output import GREEN, RED, cut, document, duration, number, paint, rate, talk, width
from sprat.cli.target import known_pool, open_existing, start_fleet
from sprat.core import model
from sprat.fleet import checker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.store.store import Store

LOOK_SECONDS = 0.2
LINE_SECONDS = 2.0  # between two lines where there is no terminal to draw on
SAME_LINE_SECONDS = 60.0  # when nothing has changed since
CALL_SECONDS = 5.0  # between two looks at the fleet
STILL_SECONDS = 5.0  # without a change, say why nothing moves
BAR = 24


def parser() -> CommandParser:
    made = CommandParser(prog="sprat watch")
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--timeout", type=seconds, metavar="SECONDS", help="give up after so long; exit code 1"
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    with open_existing(asked.url) as store:
        watch = PoolWatch(store, known_pool(store, asked.pool))
        is_over = watch.run(asked.timeout)
    if asked.json:
        document({**watch.summary(), "finished": is_over})
    elif not is_over:
        talk(f"sprat: not finished after {duration(asked.timeout)}; the work goes on")
    elif watch.poisoned:
        command = f"sprat jobs list {asked.pool} --status failed"
        talk(f"sprat: {number(watch.poisoned, 'job')} failed: `{command}` tells why")
    return DONE if is_over and not watch.poisoned else FAILED


class PoolWatch:
    """What has happened to a pool since we began to look."""

    def __init__(self, store: Store, pool: str) -> None:
        self._store = store
        self._name = pool
        self._pool = store.pool(pool)
        self._first = self._now = self._pool.counts()
        self._began = self._moved_at = self._told_at = self._call_at = time.monotonic()
        self._told: model.Counts | None = None
        self._is_drawn = sys.stderr.isatty()

    @property
    def poisoned(self) -> int:
        return max(0, self._now.poisoned - self._first.poisoned)

    @property
    def done(self) -> int:
        return max(0, self._now.done - self._first.done)

    @property
    def left(self) -> int:
        return self._now.pending + self._now.claimed

    def run(self, timeout: float | None) -> bool:
        """Look until it is over (True) or the time is."""
        end = None if timeout is None else self._began + timeout
        try:
            while True:
                self._look()
                is_over = not self.left
                if not is_over:
                    self._call()  # once at least, however short the time is
                if is_over or (end is not None and time.monotonic() >= end):
                    self._tell(last=True)
                    return is_over
                self._tell()
                time.sleep(LOOK_SECONDS)
        except KeyboardInterrupt:
            if self._is_drawn:
                talk("")
            raise

    def _call(self) -> None:
        """While there is work, have workers started, and dead ones noticed."""
        if time.monotonic() >= self._call_at:
            self._call_at = time.monotonic() + CALL_SECONDS
            start_fleet(self._store, self._name)

    def summary(self) -> dict[str, object]:
        took = time.monotonic() - self._began
        ended = {"done": self.done, "poisoned": self.poisoned, "left": self.left}
        return {"pool": self._name, **ended, "seconds": round(took, 3)}

    def _look(self) -> None:
        before, self._now = self._now, self._pool.counts()
        if before != self._now:
            self._moved_at = time.monotonic()

    def _tell(self, *, last: bool = False) -> None:
        now = time.monotonic()
        if self._is_drawn:
            sys.stderr.write(f"\r\033[K{self._bar()}" + ("\n" if last else ""))
            sys.stderr.flush()
        elif last or now - self._told_at >= self._pause():
            talk(self._line())
            self._told_at, self._told = now, self._now
        if not last and now - self._moved_at >= STILL_SECONDS:
            self._moved_at = now + 60  # not again soon
            talk(("\n" if self._is_drawn else "") + f"sprat: nothing moves: {self._why()}")

    def _pause(self) -> float:
        return SAME_LINE_SECONDS if self._told == self._now else LINE_SECONDS

    def _why(self) -> str:
        """The reason of a scaling pass that is not run, and what can be done about it."""
        state = self._pool.state()
        if state.paused:
            why = blockers.pause(state.paused_seconds, state.pause_reason)
            return f"the pool is {why}; `sprat resume {self._name}` lets it go on"
        if not state.settings.has_processor:
            return "nobody works on this pool: `sprat apply` gives it a handler"
        if held := "; ".join(blockers.held(self._pool.observe().parked)):
            return f"{held}; `sprat doctor` says what to do"
        seen = checker.check(self._store, self._name, dry_run=True)
        if seen.spawned:
            return f"{seen.reason}; `sprat check {self._name}` starts them"
        return f"{seen.reason}; `sprat explain {self._name}` tells more"

    def _bar(self) -> str:
        total = self.done + self.poisoned + self.left
        filled = BAR * (self.done + self.poisoned) // total if total else BAR
        bar = paint("#" * filled, GREEN, sys.stderr) + "." * (BAR - filled)
        line, room = self._line(), width(2) - 1
        if BAR + 3 + len(line) > room:
            return cut(line, room)
        failed = f"{self.poisoned} failed"
        return f"[{bar}] {line.replace(failed, paint(failed, RED, sys.stderr))}"

    def _line(self) -> str:
        took = max(time.monotonic() - self._began, 0.001)
        ended = self.done + self.poisoned
        if not ended + self.left:
            return f"nothing to wait for: {number(self._now.done, 'job')} done before"
        parts = [f"{self.done:,}/{ended + self.left:,} done", rate(ended / took)]
        if self.left:
            eta = duration(self.left * took / ended) if ended else "?"
            parts += [f"{self._now.claimed} running", f"ETA {eta}"]
        else:
            parts.append(f"took {duration(took)}")
        if self.poisoned:
            parts.append(f"{self.poisoned} failed")
        return ", ".join(parts)
