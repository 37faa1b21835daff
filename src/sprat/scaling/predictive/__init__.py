"""The predictive policy: slo, with workers launched before a rise that the history foretells.

Imports `core` and `scaling.slo`. Start with `policy.py`, then `forecast.py`.
"""
