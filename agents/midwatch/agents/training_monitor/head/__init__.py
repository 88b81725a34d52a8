"""The way to a head, and the submissions that it holds."""
