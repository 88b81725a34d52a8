"""When a delivery is tried again, when another channel is told, and when it is given up. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 300.0
LONGEST_ASKED_S = 3600.0
"""The longest pause that a channel may ask for."""


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a channel did not take a notice. `lasting`: another try would fail too.

    `pause_s`: how long the channel asks to be left alone.
    """

    reason: str
    lasting: bool = False
    pause_s: float | None = None


@dataclass(frozen=True, slots=True)
class Patience:
    """`elsewhere_s`: a channel that fails for so long is told of on another. `give_up_s`: the end."""

    elsewhere_s: float = 120.0
    give_up_s: float = 86_400.0
    first_pause_s: float = FIRST_PAUSE_S


@dataclass(frozen=True, slots=True)
class NextStep:
    """The next step after a refusal: tell it on another channel, give it up, or try again after `pause_s`.

    `lasting`: as in the refusal.
    """

    elsewhere: bool
    give_up: bool
    pause_s: float
    lasting: bool


def next_step(refused: Refused, tries: int, failing_s: float, age_s: float, patience: Patience) -> NextStep:
    """The next step after try number `tries`, on a channel that has been failing for `failing_s`.

    `age_s`: how long this notice has been tried.
    """
    backoff = min(patience.first_pause_s * 2 ** min(tries - 1, 20), LONGEST_PAUSE_S)
    pause_s = min(refused.pause_s or 0.0, LONGEST_ASKED_S)
    elsewhere = refused.lasting or failing_s + pause_s >= patience.elsewhere_s
    return NextStep(elsewhere, age_s >= patience.give_up_s, max(backoff, pause_s), refused.lasting)


def retry_after_s(header: str | None, now: datetime | None = None) -> float | None:
    """The seconds of an HTTP header `Retry-After`: a number or a date; None where it is neither."""
    if not header:
        return None
    text = header.strip()
    if text.replace(".", "", 1).isdecimal() and text.isascii():
        return float(text)
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return max(0.0, (at - (now or datetime.now(UTC))).total_seconds())
