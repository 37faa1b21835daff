"""Pools of workers inside one program, with nothing stored; retries and an idempotency tracker.

Imports `core` and `config`. Start with `worker_pool.py`.
"""
