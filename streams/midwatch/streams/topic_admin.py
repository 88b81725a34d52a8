"""Kept: docker-compose.yml of an earlier midwatch imports from here."""

from __future__ import annotations

from midwatch.streams.services.topic_admin import make_topics

__all__ = ["make_topics"]
