"""One worker of the load test, in its own process: settles a job and claims the next, flat out."""

from __future__ import annotations

import json
import os
import sys
import time

from sprat.core.model import WorkerRegistration
from sprat.store.open_store import open_store


def main() -> None:
    order = json.loads(sys.argv[1])
    with open_store(order["url"]) as store:
        name = f"w{os.getpid()}"
        registration = WorkerRegistration(worker_id=name, pool_id="load", lease_seconds=3600)
        me = store.workers.register(registration)
        pool = store.pool("load")
        held = pool.claim_many(me, 1)
        seconds: list[float] = []
        while held and len(seconds) < order["jobs"]:
            began = time.perf_counter()
            answer = pool.exchange(me, settlements=[pool.completion(held[0], "ok")], claim=1)
            seconds.append(time.perf_counter() - began)
            assert answer.settled == (True,)
            held = list(answer.items)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
