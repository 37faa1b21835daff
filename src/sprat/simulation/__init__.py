"""What a policy would have done: a trace of jobs replayed through it, faster than time. Pure.

Imports every lower layer. Start with `replay.py`; the rules of other autoscalers are in
`baselines/`.
"""
