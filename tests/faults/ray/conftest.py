"""One Ray head for the folder beside those that its tests break."""

from __future__ import annotations

from ray_lab.fixture import ray_head, ray_session

__all__ = ["ray_head", "ray_session"]
