"""The names of commands and effects. Pure: the same job, attempt and number give the same name.

A **command id** names one command with its `seq`. Decide may issue a refused or expired command again under
the next `seq`. An **effect key** names an effect of the command and leaves `seq` out. So any number of
commands for one attempt cause at most one `start` and one `end`. `attempt` is the one that ended or must
end. Its `start` key belongs to its successor.
"""

from __future__ import annotations

import hashlib
from typing import Literal

import msgspec

Effect = Literal["start", "end"]

_LENGTH = 32  # hex digits: 128 bits, and short enough for a comment or a submission id


def command_id(job: str, attempt: int, seq: int) -> str:
    """The id of command number `seq` for this attempt of the job."""
    return _name("command", job, attempt, seq)


def effect_key(job: str, attempt: int, effect: Effect) -> str:
    """The key that the scheduler gets. It has only letters and digits, so every scheduler accepts it."""
    return _name("effect", job, attempt, effect)


def effects_of(action: Literal["restart", "cancel"]) -> tuple[Effect, ...]:
    """The effects of a command, in the sequence in which the executor claims and performs them."""
    return ("end", "start") if action == "restart" else ("end",)


def _name(*parts: str | int) -> str:
    # JSON separates the parts. Plain joining would give ("a", 11) and ("a1", 1) one name.
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:_LENGTH]
