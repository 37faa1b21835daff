"""The Python API: `@sprat.task`, the store that tasks push to, results, and inline mode for tests.

Imports every lower layer. Start with `task.py`.
"""
