"""Why a record was refused: one word for counters and dead letters, one line for people. Pure.

The words: `malformed` (no record, or a field out of bounds), `newer` (upgrade the worker), `misdirected`
(another job's key, another partition or topic), `unsigned` (not this installation's key), `foreign` (another
shipper's line that the settings do not read), `too_large` (what would be sent is more than Kafka takes),
`failed` (the record may be right: the code that handled it raised, and the job is held).
"""

from __future__ import annotations

from dataclasses import dataclass

REASON_LIMIT = 2048


@dataclass(frozen=True, slots=True)
class Refusal:
    """`kind` is one of the words above; `reason` one printable line of at most `REASON_LIMIT` characters."""

    kind: str
    reason: str


def refusal(error: Exception) -> Refusal:
    """What to tell of a record that made this error."""
    text = "; ".join(part.strip() for part in str(error).splitlines() if part.strip())
    return Refusal(str(getattr(error, "refusal", "failed")), one_line(f"{type(error).__name__}: {text}"))


def one_line(text: str, longest: int = REASON_LIMIT) -> str:
    """Text with everything that a terminal or a log would obey spelled out, cut to a length.

    What could not be read may have been written to be shown: its words must not start lines of their own.
    """
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
