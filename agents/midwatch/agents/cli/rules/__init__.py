"""`midwatch rules …`: one file a command."""
