"""`sprat work`: one worker, in the foreground.

Workers are short-lived, so this starts lean: a command line in its plainest form (`--flag value`)
is read here, and only what is not goes through argparse.
"""

from __future__ import annotations

import os
import sys

from sprat.cli.main import DONE, FAILED
from sprat.cli.target import known_pool, open_existing
from sprat.core import model, payload
from sprat.core.errors import InvalidInput
from sprat.core.jsontext import printable
from sprat.store import default_tenant_limit
from sprat.worker import processor, worker
from sprat.worker.observer import WorkerObserver

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sprat.cli.arguments import CommandParser, Namespace
    from sprat.store.store import Store

PLAIN = {
    "--max-jobs": int,
    "--idle": float,
    "--worker-id": str,
    "--isolation": str,
    "--serve": str,
    "--group": str,
    "--seat": str,
    "--url": str,
}
FINISHING = b"sprat: finishing the job, then leaving; once more hands the job back at once\n"
HANDING_BACK = b"sprat: handing the job back\n"


class WorkArguments:
    """What was asked for; argparse fills another object with the same names."""

    pool: str
    max_jobs: int | None = None
    idle: float | None = None
    worker_id: str | None = None
    isolation: str | None = None
    serve: str | None = None
    group: str | None = None
    launched: bool = False
    seat: str | None = None
    url: str | None = None
    json = False


def main(arguments: Sequence[str]) -> int:
    asked = _plainly(arguments) or parser().parse_args(arguments)
    if asked.launched and asked.worker_id is None:
        raise InvalidInput("--launched needs the --worker-id that the place was made for")
    if asked.seat is not None and (asked.worker_id is not None or asked.serve is not None):
        raise InvalidInput("--seat takes any place of the pool: leave --worker-id and --serve out")
    with open_existing(asked.url) as store:
        os.environ["SPRAT_URL"] = store.url  # for jobs that push
        state = store.pool(asked.pool).state()
        if not state.version:
            known_pool(store, asked.pool)
        if not store.url.startswith("http"):
            default_tenant_limit.ensure(store.backend, asked.pool)
            state = store.pool(asked.pool).state()
        worker_id = asked.worker_id or f"w-{payload.new_id()}"
        if asked.seat is not None:
            report = _sit(store, asked, state)
        elif asked.serve is not None:
            report = _serve(store, asked, state, worker_id)
        else:
            report = _maker(store, asked, state)(worker_id).run()
    if report.left == worker.CHANGED and not asked.launched:
        _say(f"{worker_id} starts again: {report.left}")
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])
    if asked.json:
        _print_json(report)
    else:
        failed = f", {report.failed} of them failed" if report.failed else ""
        failed += f", {report.refused} of them refused" if report.refused else ""
        jobs = "1 job" if report.jobs == 1 else f"{report.jobs} jobs"
        _say(f"{worker_id} left ({report.left}) after {jobs}{failed}")
    return FAILED if report.left == worker.LOST or report.refused else DONE


class Speaker(WorkerObserver):
    """Prints what a worker does. How a job ended is printed when the store has accepted it."""

    def __init__(self) -> None:
        self._lines: dict[str, str] = {}  # by job

    def job_ended(self, item: model.WorkItem, settlement: model.Settlement | None) -> None:
        about = f"job {item.id} attempt {item.attempts}/{item.max_retries}"
        if settlement is None:
            _say(f"{about} stopped: cancelled, or handed back")
        else:
            self._lines[item.id] = f"{about} {_ended(settlement)}"

    def settled(self, settlement: model.Settlement, is_accepted: bool) -> None:
        line = self._lines.pop(settlement.item_id, None)
        if line is not None:
            _say(line if is_accepted else f"{line}, but refused: the claim was lost")

    def signalled(self, times: int) -> None:
        os.write(2, FINISHING if times == 1 else HANDING_BACK)  # print is not for handlers


def _maker(
    store: Store, asked: WorkArguments | Namespace, state: model.PoolState
) -> Callable[..., worker.Worker]:
    """Makes workers that run what the pool's settings say. SPRAT_PLACE is where a launcher put
    this process."""
    settings = _settings(state.settings, asked)
    job = processor.load(settings)
    place = os.environ.get("SPRAT_PLACE")
    payload.label(asked.group, "group")

    def make(
        worker_id: str, *observers: WorkerObserver, reserved: bool = asked.launched, **facts: str
    ) -> worker.Worker:
        return worker.Worker(
            store,
            asked.pool,
            job,
            settings=settings,
            version=state.version,
            worker_id=worker_id,
            reserved=reserved,
            capabilities=() if asked.group is None else (asked.group,),
            metadata=facts if place is None else {"place": place, **facts},
            observers=(*observers, Speaker()),
        )

    return make


def _serve(
    store: Store, asked: WorkArguments | Namespace, state: model.PoolState, worker_id: str
) -> worker.WorkerReport:
    """Work, and answer health checks; known to the orchestrator, if the store is one."""
    from sprat.worker.client import Client
    from sprat.worker.endpoint_worker import EndpointRegistration

    make = _maker(store, asked, state)
    presence = EndpointRegistration(
        str(asked.serve),
        lambda: make(worker_id, presence, endpoint_url=presence.url),
        say=_say,
    )
    if not store.url.startswith(("http://", "https://")):
        return presence.run(None)
    return presence.run(
        Client(store.url, worker_id=worker_id, worker_type=asked.pool, endpoint_url=presence.url)
    )


def _sit(
    store: Store, asked: WorkArguments | Namespace, state: model.PoolState
) -> worker.WorkerReport:
    """Work in one place after the other, each with the pool's settings of the moment."""
    from sprat.worker.standby_worker import Standby

    make = _maker(store, asked, state)

    def next_worker(worker_id: str) -> worker.Worker:
        nonlocal make, state
        now = store.pool(asked.pool).state()
        if now.version != state.version:
            make, state = _maker(store, asked, now), now
        return make(worker_id, seat, reserved=True)

    place = os.environ.get("SPRAT_PLACE")
    seat = Standby(
        store,
        asked.pool,
        next_worker,
        file=str(asked.seat),
        place=place,
        group=asked.group,
        say=_say,
    )
    return seat.run()


def _plainly(arguments: Sequence[str]) -> WorkArguments | None:
    """The command line, if it is in its plainest form."""
    asked = WorkArguments()
    words = list(arguments)
    pools = []
    while words:
        word = words.pop(0)
        if word in ("--json", "--launched"):
            setattr(asked, word[2:], True)
        elif word in PLAIN and words and words[0][:1] not in ("-", ""):
            try:
                value = PLAIN[word](words.pop(0))
            except ValueError:
                return None
            setattr(asked, word[2:].replace("-", "_"), value)
        elif word.startswith("-"):
            return None
        else:
            pools.append(word)
    if len(pools) != 1:
        return None
    asked.pool = pools[0]
    return asked


def _settings(settings: model.PoolSettings, asked: WorkArguments | Namespace) -> model.PoolSettings:
    """The pool's settings, with what was asked for instead."""
    changes = {
        "max_jobs": asked.max_jobs,
        "idle_seconds": asked.idle,
        "isolation": asked.isolation,
        "directory": os.environ.get("SPRAT_DIRECTORY"),
    }
    given = {name: value for name, value in changes.items() if value is not None}
    if not given:
        return settings
    from sprat.config.settings import changed

    return changed(settings, given)


def parser() -> CommandParser:
    from sprat.cli.arguments import HIDDEN, CommandParser, seconds, whole
    from sprat.config.settings import ISOLATIONS

    made = CommandParser(prog="sprat work")
    made.add_argument("pool", metavar="POOL")
    made.add_argument(
        "--max-jobs",
        type=whole(0, 1_000_000_000),
        metavar="N",
        help="leave after so many; 0: when there is no work left",
    )
    made.add_argument(
        "--idle",
        type=seconds,
        metavar="SECONDS",
        help="leave after so long without work; 0: as soon as none is ready",
    )
    made.add_argument("--worker-id", metavar="ID", help="the worker's name; else a random one")
    # A pass made the place for --worker-id: leave if it was given up since.
    made.add_argument("--launched", action="store_true", help=HIDDEN)
    made.add_argument(
        "--group", metavar="NAME", help="take work of this machine group too, not only of none"
    )
    # Take any place that passes make, and wait for the next instead of leaving; FILE is not empty
    # while the worker has one.
    made.add_argument("--seat", metavar="FILE", help=HIDDEN)
    made.add_argument(
        "--isolation", choices=ISOLATIONS, help="each job in a child process, or in this one"
    )
    made.add_argument(
        "--serve", metavar="HOST:PORT", help="answer GET /health there; a port alone: on loopback"
    )
    return made


def _print_json(report: worker.WorkerReport) -> None:
    from sprat.cli.output import document

    if report.left == worker.NO_WORK:
        document({"status": report.left})
    else:
        document({"status": report.left, **report.as_dict()})


def _ended(settlement: model.Settlement) -> str:
    if settlement.outcome == model.COMPLETE:
        return "done"
    first = (settlement.error or "").partition("\n")[0]
    return f"parked: {first}" if settlement.outcome == model.PARK else f"failed: {first}"


def _say(sentence: str) -> None:
    print(f"sprat: {printable(sentence)}", file=sys.stderr, flush=True)
