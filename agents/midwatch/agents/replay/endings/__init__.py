"""Failures that only the end of a saved log shows."""
