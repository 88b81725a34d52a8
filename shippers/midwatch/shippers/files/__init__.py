"""Finds log files, tails them through rotation and deletion, and remembers how far they were sent."""
