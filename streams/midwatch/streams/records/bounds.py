"""The bounds of records' fields. The codec refuses a record that is out of bounds, and names the field.

The bounds are wide: they refuse no true value. They refuse what would break arithmetic, a terminal or a
neighbour. Examples are a negative count, a time outside the calendar and an invalid job name.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

_PART = r"[A-Za-z0-9][A-Za-z0-9._@+-]{0,127}"
_EXACT = 2**53  # above it a JSON reader in another language may see another number
_YEAR_10000 = 253_402_300_800

JobText = Annotated[str, Meta(pattern=rf"\A{_PART}:{_PART}/{_PART}\Z")]
"""`cluster:user/run`; `midwatch.streams.records.identity` makes it."""

Name = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]{0,300}\Z")]
"""A name on one line, or no text: an incarnation, a shipper's start or a boot."""

NodeName = Annotated[str, Meta(pattern=r"\A[^\x00-\x1f\x7f-\x9f]{1,255}\Z")]

Count = Annotated[int, Meta(ge=0, le=_EXACT)]
Nodes = Annotated[int, Meta(ge=0, le=1_000_000)]
Whole = Annotated[int, Meta(ge=-_EXACT, le=_EXACT)]

Millis = Annotated[int, Meta(ge=0, lt=_YEAR_10000 * 1000)]
"""Milliseconds since 1970, before the year 10000."""

Clock = Annotated[float, Meta(ge=0, lt=_YEAR_10000)]
"""Seconds since 1970 by any clock, right or wrong."""

PolicyText = Annotated[str, Meta(max_length=64 * 1024)]
"""A policy in the format of a policy file."""

Duration = Annotated[float, Meta(gt=0, le=366 * 86_400)]
"""Seconds, above 0."""
