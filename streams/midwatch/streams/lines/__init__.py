"""Log lines: their normal form, blocks, levels, times and secrets, and the lines of foreign shippers."""
