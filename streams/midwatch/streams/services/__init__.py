"""Kafka and Redis: clients, checks, topics, and the addresses of a running `midwatch up`."""
