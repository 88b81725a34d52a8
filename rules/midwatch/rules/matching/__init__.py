"""Compiled rules over chunks of lines: what re2 finds line by line, and at which cost."""
