"""Commands that only look, one file for each."""
