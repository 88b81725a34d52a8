"""Detectors find what no single line shows: in numbers and in silence. Each is one pure module."""
