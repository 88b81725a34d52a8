"""Lines of logs: normalised once, in blocks, with their times; lines of foreign shippers."""
