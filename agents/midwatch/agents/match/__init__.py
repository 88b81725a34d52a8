"""Step 2, match: takes chunks of lines and gives the hits of the rules. Stateless."""
