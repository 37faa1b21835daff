"""The memory store: everything in this process, gone with it. The model for the other stores.

Start with `claims.py`: the protocol of a claim in plain Python.
"""
