"""Step 3, detect: events of a job in, findings and incidents out. Its state is in a Redis table."""
