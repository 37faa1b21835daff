"""RQ: its standard worker forks a process for each job. Runs in an environment with rq.

`push PORT N` stores N no-op jobs; `work PORT` runs them all and leaves.
"""

from __future__ import annotations

import sys

from bench_jobs import noop
from redis import Redis
from rq import Queue, Worker


def main(verb: str, port: str, n: str = "0") -> None:
    queue = Queue("bench", connection=Redis("127.0.0.1", int(port)))
    if verb == "push":
        for number in range(int(n)):
            queue.enqueue(noop, {"n": number}, result_ttl=0)
    else:
        Worker([queue], connection=queue.connection).work(burst=True, logging_level="ERROR")


if __name__ == "__main__":
    main(*sys.argv[1:])
