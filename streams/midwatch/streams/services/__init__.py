"""Kafka and Redis as we reach them: clients, checks, topics, the addresses of a running `midwatch up`."""
