"""The controller: a loop near the workers that runs the same scaling pass as everybody else."""
