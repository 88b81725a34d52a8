"""Records, log lines, topics, settings, clients of Kafka and Redis, and the workers below the agents."""
