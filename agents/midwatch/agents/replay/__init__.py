"""The watch over log files at rest. It runs the pure functions of the stream, without Kafka and Redis."""
