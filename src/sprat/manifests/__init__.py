"""Kubernetes manifests for sprat in a cluster: pure functions that return what kubectl applies.

A part is a module with the objects that belong together. Whatever has a value that nobody else may
see is in a Secret that people make themselves: manifests only refer to it. Names and labels are in
`plan.py` and `names.py`, what all pods have in common is in `pod.py`.
"""
