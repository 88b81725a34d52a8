"""What is done: incidents, verdicts, decisions, commands, and their execution."""
