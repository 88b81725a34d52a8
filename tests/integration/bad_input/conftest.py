"""Bad input on real workers, on the session's Kafka and Redis."""
