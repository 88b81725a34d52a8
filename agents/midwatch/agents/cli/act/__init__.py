"""Commands by which a person acts: one file a command."""
