"""SLURM as a scheduler, through its own commands."""
