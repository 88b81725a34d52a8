"""Commands that only look: one file a command."""
