"""This machine: its clock, files, locks and processes."""
