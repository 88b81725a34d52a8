"""An old import path, kept for jobs that an earlier midwatch started; see `midwatch.agents.launch`."""
