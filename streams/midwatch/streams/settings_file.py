"""Kept: docker-compose.yml of an earlier midwatch imports from here."""

from __future__ import annotations

from midwatch.streams.settings.file import load_settings

__all__ = ["load_settings"]
