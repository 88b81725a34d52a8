"""An old import path, kept for an executor of an earlier midwatch; see `midwatch.agents.schedulers`."""
