"""The tests of this folder run on real parts."""

from __future__ import annotations

from embedded_stack import admin, embedded, servers, stack, topics

__all__ = ["admin", "embedded", "servers", "stack", "topics"]
