"""The tests of this folder break real parts on purpose, and leave them running."""

from __future__ import annotations

from embedded_stack import admin, embedded, servers, stack, topics

__all__ = ["admin", "embedded", "servers", "stack", "topics"]
