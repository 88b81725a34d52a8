"""A training that fails on purpose, to drill a cluster and its watch."""
