"""Counts of ends by class, as a small JSON file: the labelled ones that ship, and a user's own. Pure.

The file holds names and counts, and no text of a log. A class is `ERROR_TYPE/CLAIM/STEPS`, for example
`nccl_timeout/transient/stepped`. Its counts are the restarts that passed, and all restarts.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from midwatch.streams.errors import ConfigurationError

VERSION = 1
_CLASS = re.compile(r"\A[^/\s\x00-\x1f]{1,100}/(transient|permanent|unknown)/(stepped|unstepped)\Z")
_MOST = 2**53

Counts = Mapping[str, tuple[int, int]]
"""By class: how many passed (of labelled ends: how many were judged worth a restart), and how many in all."""


@dataclass(frozen=True, slots=True)
class OwnOutcomes:
    """The user's own restarts by the class of the end before them. `hash` names them; "" for none."""

    counts: Counts = field(default_factory=dict)
    hash: str = ""


NO_OUTCOMES = OwnOutcomes()


def own_outcomes(counts: Counts) -> OwnOutcomes:
    """These counts with the hash of their content."""
    return OwnOutcomes(counts, counts_hash(counts)) if counts else NO_OUTCOMES


class _File(msgspec.Struct, forbid_unknown_fields=True):
    version: int
    ends: dict[str, tuple[int, int]]


def counts_text(counts: Counts) -> str:
    """The text of the file. Equal counts give equal text."""
    rows = ",\n".join(
        f"  {msgspec.json.encode(name).decode()}: [{passed}, {of}]"
        for name, (passed, of) in sorted(counts.items())
    )
    ends = f"{{\n{rows}\n}}" if rows else "{}"
    return f'{{"version": {VERSION}, "ends": {ends}}}\n'


def counts_hash(counts: Counts) -> str:
    """SHA-256 (hex) of the counts. Their order does not matter."""
    return hashlib.sha256(counts_text(counts).encode()).hexdigest()


def read_counts(content: bytes, where: str) -> dict[str, tuple[int, int]]:
    """The counts in a file.

    Raises:
        ConfigurationError: it is no such file, or its counts cannot be true.
    """
    remedy = "write it anew: midwatch outcomes --output FILE"
    try:
        file = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigurationError(f"no file of outcomes: {error}", where=where, remedy=remedy) from error
    if file.version != VERSION:
        what = f"a file of outcomes of version {file.version}; this midwatch reads {VERSION}"
        raise ConfigurationError(what, where=where, remedy=remedy)
    for name, (passed, of) in file.ends.items():
        if not _CLASS.match(name) or not 0 <= passed <= of <= _MOST:
            raise ConfigurationError(f"no counts of a class: {name[:120]!r}", where=where, remedy=remedy)
    if sum(of for _, of in file.ends.values()) > _MOST:  # a chance may add all of them up
        raise ConfigurationError("more restarts than a record can count", where=where, remedy=remedy)
    return file.ends
