"""What an attempt died of: the root among the lines, and the verdict."""
