"""Matching: compiled rules over chunks of lines, with exactly the hits of RE2 line by line."""
