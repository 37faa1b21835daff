"""Kubernetes manifests for sprat in a cluster: pure functions that return what kubectl applies.

Imports every lower layer. Start with `plan.py` and `parts.py`.
"""
