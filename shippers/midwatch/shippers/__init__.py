"""The sidecar: it follows a job's log files on a node and publishes their lines and its heartbeats."""
