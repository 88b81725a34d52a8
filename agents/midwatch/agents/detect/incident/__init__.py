"""Incident: folds all events of one attempt of a job into findings and at most one incident. Pure."""
