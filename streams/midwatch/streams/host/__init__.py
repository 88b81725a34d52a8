"""This machine: its clock, its files, its locks, its processes."""
