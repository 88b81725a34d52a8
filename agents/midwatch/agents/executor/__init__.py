"""Carries out commands, each of them once: admit, claim, act, report."""
