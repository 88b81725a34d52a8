"""What flows: records, lines, topics, settings, and the bases of the agents that read them."""
