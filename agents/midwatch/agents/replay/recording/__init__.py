"""One job's records of `events` and `incidents` in a file, and the same watch over them again."""
