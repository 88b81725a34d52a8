"""Why a record was refused: one word for counters and dead letters, one line for people. Pure.

The words are:

- `malformed`: no record, or a field out of bounds.
- `newer`: upgrade the worker.
- `misdirected`: another job's key, another partition or another topic.
- `unsigned`: not signed by this installation's key.
- `foreign`: another shipper's line that the settings do not read.
- `too_large`: a record to be sent is larger than Kafka takes.
- `failed`: the code that handled the record raised, and the job is held; the record may be right.
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
    """The refusal of a record whose handling raised this error."""
    text = "; ".join(part.strip() for part in str(error).splitlines() if part.strip())
    return Refusal(str(getattr(error, "refusal", "failed")), one_line(f"{type(error).__name__}: {text}"))


def one_line(text: str, longest: int = REASON_LIMIT) -> str:
    """The text as one line of at most `longest` characters, with control characters spelled out.

    A sender may write an unreadable record to be shown: its text must not start a line of its own.
    """
    cut = text if len(text) <= longest else f"{text[: longest - 1]}…"
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in cut)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"
