"""Runs machines: as a worker of a store, with hooks, checkpoints and launched machines.

Start with `running.py`, then `host.py` (what each kind of state does).
"""
