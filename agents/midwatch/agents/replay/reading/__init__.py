"""Reading log files at rest: packed or not, text or not, and in the order of their lines."""
