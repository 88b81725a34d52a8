"""Makes chunks and heartbeats, sends them to Kafka, and notes which of them it acknowledged."""
