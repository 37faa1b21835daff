"""In a worker's process: what runs there, and the exit code that tells its nest why it left."""

from __future__ import annotations

import os
import signal
import sys

from sprat.core import extensions, model
from sprat.core.errors import SpratError
from sprat.launchers.process.launcher import ORDER, start_nest
from sprat.launchers.process.store_proxy import FleetState
from sprat.store.open_store import open_store
from sprat.worker.signals import STOP_SIGNALS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from sprat.fleet.launcher import Crew
    from sprat.store.store import Store
    from sprat.worker.processor import Processor

# Exit codes of workers in good order. A job that runs in its worker may end it with any other.
LEFT = 90
WAS_TOLD_TO = 91
CODE_CHANGED = 92  # this nest has the wrong code for new workers


def be_fresh() -> None:
    """A worker that was not forked: reads the settings and imports the user's code itself."""
    url, (pool, worker_id) = os.environ["SPRAT_URL"], sys.argv[1:]
    store = open_store(url)
    try:
        state = store.pool(pool).state()
        processor = loaded(state.settings)
    except SpratError as error:
        store.workers.update_status(worker_id, model.LOST, reason=str(error))
        raise SystemExit(1) from None
    store.close()
    orders = FleetState(settings=state.settings, version=state.version, launch=(), wake_in=None)
    be_a_worker(url, pool, processor, orders, worker_id)


def be_a_worker(
    url: str,
    pool: str,
    processor: Processor | Crew,
    orders: FleetState,
    worker_id: str,
) -> None:
    from sprat.worker.job_process import finish_triggers
    from sprat.worker.worker import CHANGED, TOLD_TO

    code = 1
    nest = os.getppid()
    try:
        for number in STOP_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        store = open_store(url)
        left = _work(store, pool, processor, orders, worker_id)
        code = {TOLD_TO: WAS_TOLD_TO, CHANGED: CODE_CHANGED}.get(left, LEFT)
        if os.getppid() != nest and left != TOLD_TO and store.pool(pool).size():
            order = os.environ.get(ORDER)
            start_nest(url, pool, orders.settings, order=order)  # no nest is left to carry on
        finish_triggers()
    except SpratError as error:
        sys.stderr.write(f"sprat: {error}\n")
    except Exception:  # noqa: BLE001  (the top of the process: os._exit would keep it quiet)
        _complain()
    finally:
        _flush()
        os._exit(code)


def loaded(settings: model.PoolSettings) -> Processor | Crew:
    """What the workers of this nest run: the pool's processor, or the machine of an order. On
    another machine than the one where the pool was set up, the code may be elsewhere."""
    settings = settings.replace(directory=os.environ.get("SPRAT_DIRECTORY", settings.directory))
    order = os.environ.get(ORDER)
    if order is not None:
        crew: Crew = extensions.load("machine", "crew")(order, settings)
        return crew
    from sprat.worker.processor import load

    return load(settings)


def _work(
    store: Store,
    pool: str,
    processor: Processor | Crew,
    orders: FleetState,
    worker_id: str,
) -> str:
    if not callable(processor):
        return processor.work(store, pool, orders.settings, worker_id)
    from sprat.worker.worker import Worker

    return (
        Worker(
            store,
            pool,
            processor,
            settings=orders.settings,
            version=orders.version,
            worker_id=worker_id,
            reserved=True,
        )
        .run()
        .left
    )


def _complain() -> None:
    import traceback

    traceback.print_exc()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
