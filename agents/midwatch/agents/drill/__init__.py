"""Things that fail on purpose, so that a cluster and its watch can be drilled."""
