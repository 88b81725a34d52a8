"""Step 2, match: chunks of lines in, hits of rules out. Stateless."""
