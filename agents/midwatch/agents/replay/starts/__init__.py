"""Several starts of a job in one file or folder: which lines are the last one's."""
