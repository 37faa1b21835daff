"""`sprat controller`: the loop that scales pools, near their workers."""

from __future__ import annotations

import json
import os
import threading

from sprat.cli.arguments import CommandParser, address
from sprat.cli.main import DONE, FAILED
from sprat.cli.output import number, plain, say, talk
from sprat.cli.target import exists, sqlite_file
from sprat.controller import configuration
from sprat.controller.loop import Controller, Reporter
from sprat.core.errors import InvalidInput

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sprat.controller.configuration import Configuration
    from sprat.controller.metrics import ScaleSetMetrics
    from sprat.controller.reconciler import Passed

NO_DIGITS = str.maketrans("", "", "0123456789")


def parser() -> CommandParser:
    made = CommandParser(prog="sprat controller")
    made.add_argument(
        "file", metavar="FILE", nargs="?", help=f"default {configuration.FILE}, if it is here"
    )
    made.add_argument(
        "--once", action="store_true", help="one pass over all scale sets, then leave: for cron"
    )
    made.add_argument(
        "--dry-run", action="store_true", help="say what one pass would do, and change nothing"
    )
    made.add_argument(
        "--listen",
        type=address,
        metavar="HOST:PORT",
        help="answer /healthz, /readyz and /metrics there; port 0 takes a free one",
    )
    return made


def main(arguments: Sequence[str]) -> int:
    asked = parser().parse_args(arguments)
    told = configuration.load(asked.file, os.environ, url=asked.url)
    _check_store(told)
    reporter = _Lines(is_dry=asked.dry_run) if asked.json else _Sentences(is_dry=asked.dry_run)
    for warning in told.warnings:
        talk(f"sprat: {warning}")
    controller = Controller(told, reporter)
    try:
        if asked.once or asked.dry_run:
            return DONE if controller.once(dry_run=asked.dry_run) else FAILED
        talk(f"sprat: controlling {_shown(told)}; SIGTERM ends it, the workers go on")
        _run(controller, asked.listen)
    finally:
        controller.close()
    talk("sprat: the controller has left; the workers go on")
    return DONE


def _run(controller: Controller, listen: tuple[str, int] | None) -> None:
    if listen is None:
        controller.run()
        return
    from sprat.controller.endpoints import Endpoints

    with Endpoints(controller, *listen) as endpoints:
        talk(f"sprat: listening on http://{listen[0]}:{endpoints.port}")
        controller.run()


def _check_store(told: Configuration) -> None:
    """A loop over a store that is not there would wait for ever."""
    if told.url.startswith("memory:"):
        raise InvalidInput("memory:// is gone when the command ends: use sqlite:///sprat.db")
    if not exists(told.url):
        raise InvalidInput(f"there is no store {sqlite_file(told.url)} yet: `sprat apply` makes it")


def _shown(told: Configuration) -> str:
    if len(told.scale_sets) == 1:
        return told.scale_sets[0].shown
    return number(len(told.scale_sets), "scale set")


class _Sentences(Reporter):
    """A line for each pass that did something, or whose reason is new but for its numbers."""

    def __init__(self, *, is_dry: bool) -> None:
        self._is_dry = is_dry
        self._said: dict[tuple[str, str | None], str] = {}

    def say(self, sentence: str) -> None:
        talk(f"sprat: {sentence}")

    def passed(self, passed: Passed) -> None:
        checked, group = passed.checked, passed.seen.group
        did = _deeds(passed, is_dry=self._is_dry)
        words = checked.reason.translate(NO_DIGITS)
        before = self._said.get((checked.pool, group))
        self._said[checked.pool, group] = words
        if did or before != words:
            where = checked.pool if group is None else f"{checked.pool}/{group}"
            say(f"{where}: {checked.reason}{'; ' if did else ''}{did}", flush=True)

    def failed(self, metrics: ScaleSetMetrics, error: str) -> None:
        where = metrics.pool if metrics.group is None else f"{metrics.pool}/{metrics.group}"
        self.say(f"{where}: the pass failed: {error}")


def _deeds(passed: Passed, *, is_dry: bool) -> str:
    checked, would = passed.checked, "would have " if is_dry else ""
    parts = []
    if checked.spawned:
        parts.append(f"{would}launched {number(checked.spawned, 'worker')}")
    if checked.drained:
        parts.append(f"{would}told {number(len(checked.drained), 'worker')} to leave")
    if checked.reaped:
        parts.append(f"reaped {number(len(checked.reaped), 'worker')}")
    if passed.handed_back:
        late = number(len(passed.handed_back), "worker")
        parts.append(f"handed back what {late} did not finish in time")
    return ", ".join(parts)


class _Lines(Reporter):
    """Each pass as a JSON object on a line of its own."""

    def __init__(self, *, is_dry: bool) -> None:
        self._is_dry = is_dry
        self._turn = threading.Lock()

    def say(self, sentence: str) -> None:
        talk(f"sprat: {sentence}")

    def passed(self, passed: Passed) -> None:
        seen, checked = passed.seen, passed.checked
        planned = checked.spawned - len(checked.drained) if self._is_dry else 0
        self._print(
            {
                **plain(checked),
                "group": seen.group,
                "desired_workers": seen.active + seen.starting + planned,
                "limits": plain(passed.limits),
                "handed_back": list(passed.handed_back),
                "dry_run": self._is_dry,
                "failed": False,
            }
        )

    def failed(self, metrics: ScaleSetMetrics, error: str) -> None:
        self._print({"pool": metrics.pool, "group": metrics.group, "failed": True, "error": error})

    def _print(self, line: dict[str, object]) -> None:
        with self._turn:
            say(json.dumps(line, ensure_ascii=False), flush=True)
