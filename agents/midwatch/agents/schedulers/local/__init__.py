"""Processes of this machine as a scheduler: a shim starts each script once and stores its exit code."""
