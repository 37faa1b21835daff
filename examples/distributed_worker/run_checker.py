"""Runs the checker once, as a line in cron would: it launches the workers that are missing."""

from __future__ import annotations

from fleet import arguments, run

parser = arguments(__doc__)
parser.add_argument("--max-workers", type=int, default=10, help="never more (%(default)s)")

if __name__ == "__main__":
    asked = parser.parse_args()
    run("parallelization_checker", pool_id=asked.pool, max_workers=asked.max_workers)
