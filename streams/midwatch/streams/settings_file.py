"""The former place of `load_settings`. The docker-compose.yml of an earlier midwatch imports it from here."""

from __future__ import annotations

from midwatch.streams.settings.file import load_settings

__all__ = ["load_settings"]
