"""How many workers there should be: pure functions from a snapshot to a decision.

Imports `core` and `config`; knows no clock, store or process. Start with `policies.py` (the
policies by name) and `queue_depth.py` (the simplest one).
"""
