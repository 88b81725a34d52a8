"""Commands that run until they are stopped, one file for each."""
