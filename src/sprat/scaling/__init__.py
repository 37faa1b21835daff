"""How many workers there should be: pure functions from what was observed to a decision."""
