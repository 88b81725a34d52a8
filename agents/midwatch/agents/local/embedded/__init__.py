"""A real Kafka and a real Redis on this machine without Docker, for `up`, the demo and the tests."""
