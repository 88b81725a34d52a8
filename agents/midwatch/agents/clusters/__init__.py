"""Kept for what an earlier midwatch wrote down; the code is in `midwatch.agents.schedulers`."""
