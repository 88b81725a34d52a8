"""A service as a child process: its start, supervisor, probe, and the reason of its failure."""
