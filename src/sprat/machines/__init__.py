"""YAML state machines: loading and checking them, templates, and stepping from state to state.

Everything here but `runtime/` is pure. Imports every lower layer. Start with `definition.py` (a
loaded machine) and `stepping.py` (the order of its states).
"""
