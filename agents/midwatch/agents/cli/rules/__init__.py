"""`midwatch rules …`, one file for each command."""
