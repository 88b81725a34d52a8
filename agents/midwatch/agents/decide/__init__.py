"""Step 4, decide: incidents in, decisions and commands out. Its state is in a Redis table."""
