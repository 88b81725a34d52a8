"""Reads what the topics hold on jobs, for commands that change nothing."""
