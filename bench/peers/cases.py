"""Who is measured, with which versions and settings. A job is acknowledged when it is done wherever
the queue offers that; where it does not, the settings say so."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace

from bench import environment
from bench.peers.servers import Postgres, Redis, Server, Sqlite
from bench.peers.trial import Contender

HIREDIS = "hiredis==3.5.0"


@dataclass(frozen=True)
class Case:
    """A contender whose environment is made when it is its turn: `Contender.python` is unknown
    before."""

    contender: Contender
    pinned: tuple[str, ...] = ()  # none: it runs where we do
    needs: tuple[int, int] = (3, 0)  # of Python

    def ready(self) -> Contender:
        """Raises NoPython where this machine has none that is new enough."""
        if not self.pinned:
            return replace(self.contender, python=sys.executable)
        base = environment.newer_python(self.needs)
        python = environment.python(self.pinned, base)
        if base == sys.executable:
            return replace(self.contender, python=python)
        version = environment.about(base)[1]
        settings = f"{self.contender.settings}; Python {version}"
        return replace(self.contender, python=python, settings=settings)


def _side(script: str, *more: str) -> tuple[str, ...]:
    """The command that works off what a script pushed."""
    return ("{python}", "-m", "side", script, "work", *more)


def _peer(
    name: str,
    pinned: tuple[str, ...],
    *,
    script: str,
    needs: tuple[int, int] = (3, 0),
    **how: object,
) -> Case:
    """Without commands of its own, its script has a loop that works."""
    label = f"{name} {pinned[0].partition('==')[2]}"
    known = {"one": _side(script), "best": _side(script), **how}
    contender = Contender(name=label, python="", script=script, **known)  # type: ignore[arg-type]
    return Case(contender, pinned, needs)


def _ours(name: str, ahead: int, jobs: int, settings: str) -> Case:
    work = _side("peer_sprat", str(ahead))
    contender = Contender(
        name=name,
        python="",
        script="peer_sprat",
        one=work,
        best=work,
        processes=2,
        jobs=jobs,
        settings=settings,
        is_ours=True,
    )
    return Case(contender)


def _floor(script: str, batch: int, pinned: tuple[str, ...]) -> Case:
    work = _side(script)
    contender = Contender(
        name="bare statements, no library",
        python="",
        script=script,
        one=work,
        best=work,
        processes=2,
        jobs=20_000,
        settings=f"{batch} at a time: no lease, no token, no retry",
        waits=False,
    )
    return Case(contender, pinned)


AHEAD = _ours("sprat", 100, 20_000, "claim_ahead 100, isolation none")
ALONE = _ours("sprat, one at a time", 1, 5_000, "claim_ahead 1, isolation none")

CASES: dict[type[Server], list[Case]] = {
    Redis: [
        AHEAD,
        ALONE,
        _peer(
            "Dramatiq",
            ("dramatiq[redis]==2.2.1", HIREDIS),
            script="peer_dramatiq",
            one=("{bin}/dramatiq", "peer_dramatiq", "-p", "1", "-t", "8"),
            best=("{bin}/dramatiq", "peer_dramatiq", "-p", "2", "-t", "8"),
            settings="8 threads a process",
        ),
        _peer(
            "Huey",
            ("huey==3.5.4", "redis==8.1.0", HIREDIS),
            script="peer_huey",
            one=("{bin}/huey_consumer", "peer_huey.huey", "-w", "1", "-k", "thread"),
            best=("{bin}/huey_consumer", "peer_huey.huey", "-w", "2", "-k", "process"),
            settings="a job is forgotten when it is handed out",
        ),
        _peer(
            "Taskiq",
            ("taskiq==0.13.0", "taskiq-redis==1.2.4", HIREDIS),
            script="peer_taskiq",
            one=("{bin}/taskiq", "worker", "peer_taskiq:broker", "--workers", "1"),
            best=("{bin}/taskiq", "worker", "peer_taskiq:broker", "--workers", "2"),
            settings="stream broker",
            jobs=2000,
        ),
        _peer(
            "SAQ",
            ("saq[redis,hiredis]==0.26.4", "typing_extensions==4.15.0"),
            script="peer_saq",
            one=("{bin}/saq", "peer_saq.settings"),
            best=("{bin}/saq", "peer_saq.settings", "--workers", "2"),
            settings="10 jobs at a time",
            jobs=2000,
        ),
        _peer(
            "Celery",
            ("celery[redis]==5.7.0", HIREDIS),
            script="peer_celery",
            one=("{bin}/celery", "-A", "peer_celery", "worker", "-P", "solo", "-l", "ERROR"),
            best=("{bin}/celery", "-A", "peer_celery", "worker", "-c", "2", "-l", "ERROR"),
            settings="acks_late, prefetch 50, no results; solo, and prefork for two cores",
            jobs=2000,
        ),
        _peer(
            "arq",
            ("arq==0.28.0", HIREDIS),
            script="peer_arq",
            one=("{bin}/arq", "peer_arq.Worker"),
            best=("{bin}/arq", "peer_arq.Worker"),
            processes=2,
            settings="50 jobs at a time, looks every 20 ms",
            jobs=1000,
        ),
        _peer(
            "RQ",
            ("rq==2.12.0", "redis==8.1.0", HIREDIS),
            script="peer_rq",
            one=("{bin}/rq", "worker", "-w", "rq.worker.SimpleWorker", "-u", "{url}", "bench"),
            best=("{bin}/rq", "worker", "-w", "rq.worker.SimpleWorker", "-u", "{url}", "bench"),
            processes=2,
            settings="SimpleWorker: no fork",
            jobs=500,
        ),
        _floor("floor_redis", 50, ("redis==8.1.0", HIREDIS)),
    ],
    Postgres: [
        AHEAD,
        ALONE,
        _peer(
            "PgQueuer",
            ("pgqueuer[asyncpg]==1.6.0", "uvloop==0.23.0"),
            script="peer_pgqueuer",
            processes=2,
            settings="asyncpg, uvloop, batches of 100",
            jobs=10_000,
        ),
        _peer(
            "Chancy",
            ("chancy==0.26.0", "psycopg[binary]==3.3.8"),
            script="peer_chancy",
            processes=2,
            settings="coroutines, 100 at a time, eager polling",
            jobs=3000,
        ),
        _peer(
            "Procrastinate",
            ("procrastinate==3.10.0", "psycopg[binary]==3.3.8"),
            script="peer_procrastinate",
            one=(
                *("{bin}/procrastinate", "--app", "peer_procrastinate.app", "worker"),
                *("--concurrency", "10", "--delete-jobs", "successful"),
            ),
            best=(
                *("{bin}/procrastinate", "--app", "peer_procrastinate.app", "worker"),
                *("--concurrency", "10", "--delete-jobs", "successful"),
            ),
            processes=2,
            settings="10 at a time, finished jobs deleted",
            jobs=1000,
        ),
        _peer(
            "Oban",
            ("oban==0.7.0", "psycopg[binary]==3.3.8", "uvloop==0.23.0"),
            needs=(3, 12),
            script="peer_oban",
            processes=2,
            settings="100 at a time, uvloop, no log of each job",
            jobs=2000,
        ),
        _floor("floor_postgres", 100, ("psycopg[binary]==3.3.8",)),
    ],
    Sqlite: [
        AHEAD,
        ALONE,
        _peer(
            "Huey",
            ("huey==3.5.4",),
            script="peer_huey",
            one=("{bin}/huey_consumer", "peer_huey.huey", "-w", "1", "-k", "thread"),
            best=("{bin}/huey_consumer", "peer_huey.huey", "-w", "2", "-k", "process"),
            settings="a job is forgotten when it is handed out",
            jobs=2000,
        ),
        _peer(
            "litequeue",
            ("litequeue==0.9",),
            script="peer_litequeue",
            processes=2,
            settings="has no worker: a loop of pop() and done(), looks every 50 ms",
            jobs=2000,
        ),
        _peer(
            "persist-queue",
            ("persist-queue==1.1.0",),
            script="peer_persistqueue",
            settings="has no worker: a loop of get() and ack(), looks every 50 ms; one process",
            jobs=2000,
        ),
    ],
}
