"""How others would have sized the fleet: their rules, with their defaults, for comparison. Pure.

All of them are treated kindly: the queue is read without delay, who is not needed is retired idle
first, and a busy worker that has to go ends its job.
"""
