"""The same watch over log files at rest: no Kafka, no Redis, the same pure functions as the stream."""
