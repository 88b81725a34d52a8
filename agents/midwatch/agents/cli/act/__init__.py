"""Commands by which a person acts, one file for each."""
