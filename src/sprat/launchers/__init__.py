"""Where workers start: forked processes, Docker containers, Kubernetes pods.

Imports every lower layer. Each launcher is a package with its `launcher.py` and its `options.py`.
"""
