"""What goes to Kafka: chunks, heartbeats, and which of them it has acknowledged."""
