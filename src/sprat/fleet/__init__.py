"""One scaling pass: reap, observe, decide, record, launch.

Imports `core`, `config`, `scaling` and `store`. Start with `checker.py`. Launchers are found by
name (`launcher.py` has their protocol).
"""
