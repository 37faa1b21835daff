"""The loop: a thread for each scale set, until a signal says that it is enough.

A pass that fails is one line in the log, and the loop goes on: after the poll interval, or sooner
and ever more slowly while the store cannot be reached. On SIGTERM each thread finishes its pass and
gives up its lease; the workers go on.
"""

from __future__ import annotations

import os
import random
import threading
import time
import traceback
from collections.abc import Callable

from sprat.controller.config_file import ControlledScaleSet
from sprat.controller.configuration import Configuration
from sprat.controller.metrics import ScaleSetMetrics
from sprat.controller.reconciler import Passed, Reconciler
from sprat.controller.remote import Remote
from sprat.controller.work_watch import WorkWatch
from sprat.core import payload
from sprat.core.errors import SpratError, StoreUnavailable
from sprat.store.open_store import open_store
from sprat.store.store import Store
from sprat.worker.client import pause_after
from sprat.worker.signals import Signals

LOOK_UP_SECONDS = 0.25  # a signal is noticed within this
NEW_POOLS_SECONDS = 15.0  # between two looks for pools that came or went
AFTER_AN_ERROR_SECONDS = 5.0
GRACE_SECONDS = 60.0  # for the passes that are under way when a signal comes


class Reporter:
    """What a controller tells whoever runs it. All of it may come from any thread."""

    def say(self, sentence: str) -> None:
        raise NotImplementedError

    def passed(self, passed: Passed) -> None:
        raise NotImplementedError

    def failed(self, metrics: ScaleSetMetrics, error: str) -> None:
        raise NotImplementedError


class Controller:
    """All scale sets of one configuration."""

    def __init__(self, configuration: Configuration, reporter: Reporter) -> None:
        self._configuration = configuration
        self._reporter = reporter
        self._store = open_store(configuration.url)
        self._holder = f"{os.uname().nodename}/{os.getpid()}/{payload.new_id()[-8:]}"
        self._remote: Remote | None = None
        if configuration.is_remote:
            ttl = configuration.config_ttl_seconds
            self._remote = Remote(configuration.url, ttl, complain=reporter.say)
        self._rounds: dict[tuple[str, str | None], Round] = {}
        self._has_looked = False  # for pools, and could
        self._is_leaving = False

    def close(self) -> None:
        self._store.close()

    # -- once -------------------------------------------------------------------------------

    def once(self, *, dry_run: bool = False) -> bool:
        """One pass over every scale set; whether all went well. Where another controller leads,
        it is left to it. A dry run changes nothing."""
        all_well = True
        for pool, scale_set in self._targets():
            reconciler = self._reconciler(pool, scale_set)
            try:
                if dry_run:
                    self._reporter.passed(reconciler.run(dry_run=True))
                    continue
                if not reconciler.leads():
                    self._reporter.say(f"{pool}: another controller leads, nothing to do")
                    continue
                try:
                    self._reporter.passed(reconciler.run())
                finally:
                    reconciler.close()
            except SpratError as error:
                all_well = False
                self._reporter.failed(reconciler.metrics, str(error))
        return all_well

    def _targets(self) -> list[tuple[str, ControlledScaleSet]]:
        """Every pool that is to be looked after, each group of it once. A scale set that names
        its pool goes before one that takes all."""
        found: dict[tuple[str, str | None], tuple[str, ControlledScaleSet]] = {}
        sets = sorted(self._configuration.scale_sets, key=lambda one: one.pool is None)
        for one in sets:
            pools = _workable(self._store) if one.pool is None else [one.pool]
            for pool in pools:
                found.setdefault((pool, one.group), (pool, one))
        return list(found.values())

    def _reconciler(self, pool: str, scale_set: ControlledScaleSet) -> Reconciler:
        return Reconciler(
            self._store,
            pool,
            scale_set,
            self._configuration,
            holder=self._holder,
            remote=self._remote,
            passed=self._reporter.passed,
        )

    # -- for as long as it takes ------------------------------------------------------------

    def run(self) -> None:
        """Until SIGTERM or SIGINT. A signal may reach another thread than this one, and its
        handler must take no locks: so this thread looks up from its sleep."""
        with Signals(self._leave):
            due = 0.0
            while not self._is_leaving:
                if time.monotonic() >= due:
                    due = time.monotonic() + self._look_for_pools()
                time.sleep(LOOK_UP_SECONDS)
            for round_ in self._rounds.values():
                round_.end()
            for round_ in self._rounds.values():
                round_.join(GRACE_SECONDS)

    def _leave(self) -> None:
        self._is_leaving = True

    def _look_for_pools(self) -> float:
        """Seconds until the next look."""
        try:
            self._refresh()
        except SpratError as error:
            self._reporter.say(f"cannot look for pools: {error}")
            self._has_looked = False
            return AFTER_AN_ERROR_SECONDS
        self._has_looked = True
        return NEW_POOLS_SECONDS

    def metrics(self) -> list[ScaleSetMetrics]:
        return [round_.reconciler.metrics for round_ in list(self._rounds.values())]

    def is_alive(self) -> bool:
        return all(round_.is_alive() for round_ in list(self._rounds.values()))

    def is_ready(self, patience: float) -> bool:
        """Whether all went well lately, in every scale set that there is."""
        return self._has_looked and all(one.is_ready(patience) for one in self.metrics())

    def _refresh(self) -> None:
        """Begin with pools that are new, and end with those that are gone."""
        targets = {(pool, one.group): (pool, one) for pool, one in self._targets()}
        for key, (pool, scale_set) in targets.items():
            if key not in self._rounds:
                reconciler = self._reconciler(pool, scale_set)
                watch_url = self._configuration.url
                self._rounds[key] = Round(reconciler, watch_url, failed=self._reporter.failed)
                self._rounds[key].start()
        for key in self._rounds.keys() - targets.keys():
            self._rounds.pop(key).end()


def _workable(store: Store) -> list[str]:
    pools = store.pools()
    return [one for one in pools if store.pool(one).state().settings.has_processor]


class Round(threading.Thread):
    """The thread of one scale set."""

    def __init__(
        self, reconciler: Reconciler, url: str, *, failed: Callable[[ScaleSetMetrics, str], None]
    ) -> None:
        super().__init__(name=f"scale set {reconciler.pool}", daemon=True)
        self.reconciler = reconciler
        self._failed = failed
        self._is_over = threading.Event()
        self._wake = threading.Event()
        self._rang = False
        self._watch = WorkWatch(url, reconciler.pool, self._ring)

    def end(self) -> None:
        self._is_over.set()
        self._wake.set()

    def run(self) -> None:
        failures = 0
        while not self._is_over.is_set():
            try:
                pause, failures = self._step(), 0
            except StoreUnavailable as error:
                failures += 1
                pause = pause_after(failures) * random.uniform(0.5, 1.0)
                self._report(f"{error}; trying again in {pause:.0f} s")
            except SpratError as error:
                pause = self.reconciler.pause_after_failure()
                self._report(str(error))
            except Exception as error:  # noqa: BLE001 - the top of the loop: it goes on
                traceback.print_exc()
                pause = self.reconciler.pause_after_failure()
                self._report(f"{type(error).__name__}: {error}")
            self._wake.wait(pause)
            self._wake.clear()
        self._watch.close()
        try:
            self.reconciler.close()
        except SpratError:
            pass  # the lease ends by itself

    def _step(self) -> float:
        is_woken, self._rang = self._rang, False
        before = self.reconciler.metrics.passes
        pause = self.reconciler.step(is_woken=is_woken)
        if not self.reconciler.metrics.is_leader:
            self._watch.rest()
        elif self.reconciler.metrics.passes > before:
            # A ring after which there was nothing to do was for others, and would come again.
            is_news = self.reconciler.has_nothing_to_do and not is_woken
            self._watch.begin() if is_news else self._watch.rest()
        return pause

    def _ring(self) -> None:
        self._rang = True
        self._wake.set()

    def _report(self, error: str) -> None:
        self.reconciler.metrics.failed_with(error)
        self._failed(self.reconciler.metrics, error)
