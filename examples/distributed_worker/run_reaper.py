"""Runs the reaper once: workers that are not heard of are lost, and their jobs free again."""

from __future__ import annotations

from fleet import arguments, run

parser = arguments(__doc__)
parser.add_argument(
    "--threshold", type=float, default=60.0, help="seconds without a heartbeat (%(default)s)"
)

if __name__ == "__main__":
    asked = parser.parse_args()
    run("stale_worker_reaper", pool_id=asked.pool, stale_threshold_seconds=asked.threshold)
