"""Adds jobs to the pool. Nobody is started: that is the checker's affair."""

from __future__ import annotations

from fleet import arguments, open_store

parser = arguments(__doc__)
parser.add_argument("--count", type=int, default=10, help="how many jobs (%(default)s)")
parser.add_argument("--delay", type=float, default=1.0, help="seconds for each (%(default)s)")
parser.add_argument("--max-retries", type=int, default=3, help="attempts at each (%(default)s)")
parser.add_argument("--fail", action="store_true", help="every attempt at them fails")

if __name__ == "__main__":
    asked = parser.parse_args()
    jobs = [
        {"message": f"job {n}", "delay": asked.delay, "fail": asked.fail}
        for n in range(1, asked.count + 1)
    ]
    with open_store() as store:
        store.pool(asked.pool).push_many(jobs, max_retries=asked.max_retries)
    print(f"pushed {asked.count} jobs to {asked.pool}")
