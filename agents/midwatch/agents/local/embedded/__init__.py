"""A real Kafka and Redis on this machine without Docker, for `up`, the demo and the tests."""
