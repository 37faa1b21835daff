"""Where machines meet the world: the store, workers, other processes, the user's code."""
