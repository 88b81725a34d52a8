"""The embedded Kafka broker: its jars, its Java, its start."""
