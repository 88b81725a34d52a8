"""The session's Kafka and Redis, for the processes of a built image."""

from __future__ import annotations

from embedded_stack import embedded, stack

__all__ = ["embedded", "stack"]
