"""Recordings: one job's records of `events` and `incidents` in a file, and the watch repeated over them."""
