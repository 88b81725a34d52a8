"""The former place of `make_topics`. The docker-compose.yml of an earlier midwatch imports it from here."""

from __future__ import annotations

from midwatch.streams.services.topic_admin import make_topics

__all__ = ["make_topics"]
