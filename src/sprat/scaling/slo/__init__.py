"""The default policy: the cheapest fleet that starts, say, 95 % of the jobs within 30 seconds.

Imports `core` and the rest of `scaling`. Start with `policy.py`, then `outlook.py` and `plan.py`;
`memory.py` has what is kept between decisions.
"""
