"""Runs one worker here: it takes one job, does it, and leaves."""

from __future__ import annotations

from fleet import arguments, run

parser = arguments(__doc__)
parser.add_argument("--worker-id", help="its name in the registry; else a random one")

if __name__ == "__main__":
    asked = parser.parse_args()
    run("job_worker", asked.worker_id, pool_id=asked.pool)
