"""Traces of incidents: reads what the other agents wrote, and exports spans and log records."""
