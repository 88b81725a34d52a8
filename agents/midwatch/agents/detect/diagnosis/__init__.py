"""Why an attempt ended: the root line, and the verdict."""
