"""One test of the house runs on a real Kafka."""

from __future__ import annotations

from embedded_stack import embedded, stack

__all__ = ["embedded", "stack"]
