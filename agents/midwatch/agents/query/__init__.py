"""What the topics tell of jobs, for commands that only look."""
