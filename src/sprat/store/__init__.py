"""Durable pools of jobs and the registry of workers, on any of five stores.

Imports `core`, `config` and `scaling`. Start with `backend.py` (the verbs of a store, on one
page), then `memory/` (the executable model of those verbs), `pool.py` and `open_store.py`.
"""
