"""Records, errors and rules that every other package uses.

Imports nothing else of sprat. Start with `model.py` (the records that travel between a store and
its users) and `errors.py`.
"""
