"""The controller: a loop near the workers that runs the same scaling pass as every other process.

Imports every lower layer. Start with `loop.py`, then `reconciler.py` (one scale set).
"""
