"""Forks short-lived workers as a fork server does, in turn, and prints their mean CPU time.

python forked_workers.py DIRECTORY WORKERS KIND: a worker of the pool's handler (`handler`), the
machine job_worker.yml with a machine as its processor (`machine`) or with the handler (`both`).
"""

from __future__ import annotations

import gc
import os
import sys
import traceback
from collections.abc import Callable

from sprat import open_store
from sprat.core.model import PoolSettings
from sprat.launchers.process.fork_server import _import_worker_modules
from sprat.store.open_store import preload
from sprat.store.store import Store
from sprat.worker.processor import load

Work = Callable[[Store, PoolSettings, str], object]


def main(place: str, workers: int, kind: str) -> None:
    url = f"sqlite:///{place}/{kind}.db"
    with open_store(url) as store:
        pool = store.pool("p")
        done = pool.counts().done
        pool.configure(handler="json:dumps", max_jobs=1, max_workers=workers)
        pool.push_many([{"n": n} for n in range(workers)])
        decision = _decision(workers)
        recorded = pool.record(decision, version=pool.observe().version)
        assert recorded is not None
        settings = pool.state().settings
    preload(url)
    _import_worker_modules()
    work = by_handler(settings) if kind == "handler" else by_machine(place, kind, settings)
    gc.collect()
    gc.freeze()
    spent = [cpu(work, url, settings, worker_id) for worker_id in recorded.launched]
    with open_store(url) as store:
        assert store.pool("p").counts().done == done + workers
    print(1000 * sum(spent) / workers)


def _decision(workers: int) -> object:
    from sprat.core.model import Decision

    return Decision(
        pool="p", policy="test", direction="up", current=0, desired=workers, reason="a test",
        launch=workers, max_workers=workers,
    )  # fmt: skip


def by_handler(settings: PoolSettings) -> Work:
    from sprat.worker.worker import Worker

    processor = load(settings)
    return lambda store, settings, worker_id: Worker(
        store, "p", processor, settings=settings, worker_id=worker_id, reserved=True
    ).run()


def by_machine(place: str, kind: str, settings: PoolSettings) -> Work:
    from sprat.machines.library import Library
    from sprat.machines.runtime import launching
    from sprat.machines.runtime.launched import MachineCrew

    bound = {"actual_job_processor": f"{place}/echo.yml"} if kind == "machine" else {}
    library = Library(bound)
    machine = library.read(f"{place}/job_worker.yml")
    crew = MachineCrew(launching.order(machine, '{"pool_id": "p"}', library, None), settings)
    return lambda store, settings, worker_id: crew.work(store, "p", settings, worker_id)


def cpu(work: Work, url: str, settings: PoolSettings, worker_id: str) -> float:
    """The CPU seconds of a fork that does this and leaves, with those of its own children."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work(open_store(url), settings, worker_id)
            code = 0
        except BaseException:  # noqa: BLE001  (the child leaves at once)
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status, used = os.wait4(pid, 0)
    assert status == 0, status
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])
