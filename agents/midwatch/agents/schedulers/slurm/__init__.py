"""SLURM, by its own commands."""
