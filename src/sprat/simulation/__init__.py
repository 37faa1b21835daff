"""What a policy would have done: a trace of jobs replayed through it, faster than time. Pure."""
