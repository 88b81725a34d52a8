"""Local processes as a scheduler: a shim starts each script once and keeps its exit status."""
