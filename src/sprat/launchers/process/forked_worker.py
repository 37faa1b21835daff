"""In a worker's process: what it runs, and the exit code that reports why it left."""

from __future__ import annotations

import os
import signal
import sys

from sprat.core import extensions, model
from sprat.core.errors import SpratError
from sprat.launchers.process.launcher import MACHINE, start_fork_server
from sprat.launchers.process.proxy_requests import FleetState
from sprat.store.open_store import open_store
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.fleet.launcher import Crew
    from sprat.store.store import Store
    from sprat.worker.processor import Processor

# Exit codes of workers that left in order. A job inside a worker may end it with any other.
LEFT = 90
WAS_TOLD_TO = 91
CODE_CHANGED = 92  # this fork server has the wrong code for new workers


def run_unforked() -> None:
    """A worker that was not forked: reads the settings and imports the user's code itself."""
    url, (pool, worker_id) = os.environ["SPRAT_URL"], sys.argv[1:]
    store = open_store(url)
    try:
        state = store.pool(pool).state()
        processor = load_processor(state.settings)
    except SpratError as error:
        store.workers.update_status(worker_id, model.LOST, reason=str(error))
        raise SystemExit(1) from None
    store.close()
    fleet = FleetState(settings=state.settings, version=state.version, launch=(), wake_in=None)
    run_worker(url, pool, processor, fleet, worker_id)


def run_worker(
    url: str,
    pool: str,
    processor: Processor | Crew,
    state: FleetState,
    worker_id: str,
) -> None:
    from sprat.worker.job_process import finish_triggers
    from sprat.worker.worker import CHANGED, TOLD_TO

    code = 1
    fork_server = os.getppid()
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        store = open_store(url)
        left = _work(store, pool, processor, state, worker_id)
        code = {TOLD_TO: WAS_TOLD_TO, CHANGED: CODE_CHANGED}.get(left, LEFT)
        if os.getppid() != fork_server and left != TOLD_TO and store.pool(pool).size():
            # No fork server is left to run the next pass.
            start_fork_server(url, pool, state.settings, machine=os.environ.get(MACHINE))
        finish_triggers()
    except SpratError as error:
        sys.stderr.write(f"sprat: {error}\n")
    except Exception:  # noqa: BLE001  (the top of the process: os._exit would keep it quiet)
        _print_traceback()
    finally:
        _flush()
        os._exit(code)


def load_processor(settings: model.PoolSettings) -> Processor | Crew:
    """What the workers of this fork server run: the pool's processor, or the machine of a launch.
    On another host than the one where the pool was set up, the code may be elsewhere."""
    settings = settings.replace(directory=os.environ.get("SPRAT_DIRECTORY", settings.directory))
    machine = os.environ.get(MACHINE)
    if machine is not None:
        crew: Crew = extensions.load("machine", "crew")(machine, settings)
        return crew
    from sprat.worker.processor import load

    return load(settings)


def _work(
    store: Store,
    pool: str,
    processor: Processor | Crew,
    state: FleetState,
    worker_id: str,
) -> str:
    if not callable(processor):
        return processor.work(store, pool, state.settings, worker_id)
    from sprat.worker.worker import Worker

    return (
        Worker(
            store,
            pool,
            processor,
            settings=state.settings,
            version=state.version,
            worker_id=worker_id,
            reserved=True,
        )
        .run()
        .left
    )


def _print_traceback() -> None:
    import traceback

    traceback.print_exc()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
