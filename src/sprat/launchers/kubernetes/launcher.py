"""Workers as pods of a Kubernetes cluster: single ones, Jobs, or those of a Deployment."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from sprat.core.errors import LaunchFailed, SpratError
from sprat.core.model import PoolSettings, WorkerRecord
from sprat.core.runtime import runtime
from sprat.launchers import option_checks
from sprat.launchers.kubernetes import options as modes
from sprat.launchers.kubernetes.client import Cluster
from sprat.launchers.kubernetes.pods import PodOrder
from sprat.launchers.remote import RemoteLauncher


class KubernetesLauncher(RemoteLauncher):
    """Each call opens its own connection: a pass is rare, and a login may have been renewed."""

    def launch(
        self, url: str, pool: str, settings: PoolSettings, worker_ids: Sequence[str]
    ) -> None:
        options = _options(settings)
        with _cluster(options) as cluster:
            if options.mode == modes.DEPLOYMENT:
                _fit(cluster, url, pool, settings=settings, launched=worker_ids)
                return
            order = _order(cluster, url, pool, options)
            for place, worker_id in enumerate(worker_ids):
                try:
                    _create(cluster, order, worker_id)
                except SpratError as error:  # the next ones would meet the same
                    raise LaunchFailed(str(error), tuple(worker_ids[place:])) from error

    def tend(
        self, url: str, pool: str, settings: PoolSettings, workers: Sequence[WorkerRecord]
    ) -> dict[str, str]:
        options = _options(settings)
        with _cluster(options) as cluster:
            if options.mode == modes.DEPLOYMENT:
                return _fit(cluster, url, pool, settings=settings)
            return _tend(cluster, url, pool, settings=settings, workers=workers)

    def start_pass(self, url: str, pool: str, settings: PoolSettings) -> None:
        """Not from inside a worker: its pod may not make others, that is for the controller."""
        if not os.environ.get("SPRAT_PLACE"):
            super().start_pass(url, pool, settings)


def _options(settings: PoolSettings) -> modes.Options:
    options: modes.Options = option_checks.options(settings.launcher, settings.launcher_options)
    return options


def _cluster(options: modes.Options) -> Cluster:
    from sprat.launchers.kubernetes.client import Cluster

    return Cluster(options.context, options.namespace)


def _order(cluster: Cluster, url: str, pool: str, options: modes.Options) -> PodOrder:
    from sprat.launchers.kubernetes.pods import PodOrder, check_reach

    order = PodOrder(
        url=url,
        pool=pool,
        options=options,
        namespace=cluster.namespace,
        mark=cluster.mark,
        owner=None,
        has_key=bool(os.environ.get("SPRAT_API_KEY")) and url.startswith("http"),
        allows_http=os.environ.get("SPRAT_ALLOW_HTTP") == "1",
    )
    check_reach(order)
    return order if options.owner is None else order.replace(owner=_owner(cluster, options.owner))


def _owner(cluster: Cluster, name: str) -> dict[str, Any]:
    from sprat.launchers.kubernetes.client import DEPLOYMENT

    deployment = cluster.get(DEPLOYMENT, name)
    uid = deployment["metadata"]["uid"]
    return {"apiVersion": "apps/v1", "kind": "Deployment", "name": name, "uid": uid}


def _create(cluster: Cluster, order: PodOrder, worker_id: str) -> None:
    """The same worker twice is one pod: its name is taken."""
    from sprat.launchers.kubernetes import jobs, pods
    from sprat.launchers.kubernetes.client import JOB, POD

    if order.options.mode == modes.JOB:
        cluster.create(JOB, jobs.job(order, worker_id))
    else:
        cluster.create(POD, pods.pod(order, worker_id))


def _tend(
    cluster: Cluster,
    url: str,
    pool: str,
    *,
    settings: PoolSettings,
    workers: Sequence[WorkerRecord],
) -> dict[str, str]:
    from sprat.launchers.kubernetes import jobs, names, reconcile
    from sprat.launchers.kubernetes.client import JOB, POD

    options, now = _options(settings), runtime.time()
    labels = {names.POOL: names.label_of(pool)}
    ours = {**labels, names.STORE: names.store_mark(url)}
    job_list = cluster.list(JOB, labels=ours) if options.mode == modes.JOB else []
    pods = cluster.list(POD, labels=labels)
    verdict = reconcile.judge(
        reconcile.Situation(
            pods=pods,
            workers=workers,
            now=now,
            mark=cluster.mark,
            namespace=cluster.namespace,
            store=ours[names.STORE],
            start_deadline_seconds=settings.start_deadline_seconds,
            ttl_seconds=options.ttl_seconds,
        )
    )
    gone, delete = dict(verdict.gone), set(verdict.delete)
    if options.mode == modes.JOB:
        refused = jobs.without_pods(cluster, job_list, pods, workers, now)
        gone |= refused
        delete.update(names.name_of(worker_id) for worker_id in refused)
        delete.update(jobs.finished(job_list, options.ttl_seconds, now))
    for name in sorted(delete):
        cluster.delete(JOB if options.mode == modes.JOB else POD, name)
    return gone


def _fit(
    cluster: Cluster,
    url: str,
    pool: str,
    *,
    settings: PoolSettings,
    launched: Sequence[str] = (),
) -> dict[str, str]:
    from sprat.core import model
    from sprat.launchers.kubernetes import deployment
    from sprat.store.open_store import open_store

    options = _options(settings)
    with open_store(url) as store:

        def live() -> list[WorkerRecord]:
            return store.workers.list(status=model.LIVE, pool_id=pool)

        if launched:
            deployment.check_group([w for w in live() if w.worker_id in launched], options.group)
        return deployment.fit(
            cluster, options, live, now=runtime.time(), deadline=settings.start_deadline_seconds
        )
