"""Detectors: what is seen in numbers and in silence rather than in one line. One file each, all pure."""
