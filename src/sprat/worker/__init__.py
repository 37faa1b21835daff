"""A worker: registers, claims jobs, runs them, settles them, sends heartbeats, and leaves.

Imports `core`, `config`, `scaling` and `store`. Start with `worker.py` (the loop), then
`attempt.py` (one attempt at a job) and `processor.py` (the code that a job runs).
"""
