"""One Ray head for the folder, and the session's Kafka and Redis."""

from __future__ import annotations

from ray_lab.fixture import ray_head, ray_session
from ray_lab.world import ray_world

__all__ = ["ray_head", "ray_session", "ray_world"]
