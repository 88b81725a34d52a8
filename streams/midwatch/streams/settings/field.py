"""A setting as a dataclass field. Pure."""

from __future__ import annotations

from dataclasses import field
from typing import TypeVar

from midwatch.streams.settings import kinds

T = TypeVar("T")


def setting(kind: kinds.Kind[T], default: T, description: str) -> T:
    """A dataclass field for one setting, with its kind, default and description."""
    return field(default=default, metadata={"kind": kind, "description": description})
