"""A real executor on the session's Kafka and Redis."""

from __future__ import annotations

from executor_world import observing, world

__all__ = ["observing", "world"]
