"""A Kafka broker of our own: its jars, its Java, its start."""
