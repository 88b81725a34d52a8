"""What a command and its effects are called. Pure: the same job, attempt and number give the same name.

A **command id** names one order, with its `seq`: a refused or expired order may be issued again under the
next one. An **effect key** names what the order brings about and leaves `seq` out, so however many orders
are issued for one attempt, at most one `start` and one `end` of it can take effect. `attempt` is the one
that ended or is to be ended; its `start` key belongs to the successor that takes its place.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

Effect = Literal["start", "end"]

_LENGTH = 32  # hex digits: 128 bits, and short enough for a comment or a submission id


def command_id(job: str, attempt: int, seq: int) -> str:
    """The id of the order number `seq` for this attempt of the job."""
    return _name("command", job, attempt, seq)


def effect_key(job: str, attempt: int, effect: Effect) -> str:
    """The key that travels to the scheduler: letters and digits only, so every scheduler takes it."""
    return _name("effect", job, attempt, effect)


def effects_of(action: Literal["restart", "cancel"]) -> tuple[Effect, ...]:
    """Which effects an order needs, in the order in which they are claimed and brought about."""
    return ("end", "start") if action == "restart" else ("end",)


def _name(*parts: str | int) -> str:
    # JSON keeps the parts apart: plain joining would let ("a", 11) and ("a1", 1) meet.
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_LENGTH]
