"""A notice: one message to people, before a channel gives it its form. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from typing import Literal

from midwatch.agents.activity import printable
from midwatch.streams.settings.kinds import MessageSeverity

NoticeState = Literal["opened", "again", "resolved"]

SEVERITIES: tuple[MessageSeverity, ...] = ("info", "warning", "critical")
"""The least severe first."""
_TITLE_LIMIT = 200
_LINE_LIMIT = 1500


@dataclass(frozen=True, slots=True)
class Notice:
    """What people are to hear. Its texts hold words of a log, and a channel must escape them.

    `key` names the alarm: its first notice, its reminders and its resolution have the same one. `number`
    counts the notices of a key. `group` is the same for all that belongs to one incident.
    """

    key: str
    number: int
    group: str
    state: NoticeState
    severity: MessageSeverity
    job: str
    title: str
    at_ms: int
    what: str = ""
    why: str = ""
    done: str = ""
    look: str = ""
    note: str = ""  # why it comes on this channel, if another one failed
    version: int = field(default=1)

    @property
    def id(self) -> str:
        """The same for each delivery of this notice; another one for each other notice."""
        return hashlib.sha256(f"{self.key}\0{self.number}\0{self.at_ms}".encode()).hexdigest()[:32]

    @property
    def heading(self) -> str:
        """One line: how severe it is, and the title."""
        word = {"opened": self.severity.upper(), "again": f"STILL {self.severity.upper()}"}
        return one_line(f"[midwatch] {word.get(self.state, 'RESOLVED')}: {self.title}", _TITLE_LIMIT)

    def lines(self) -> tuple[tuple[str, str], ...]:
        """What stands below the heading: (label, text), each text on one line."""
        pairs = (
            ("Note", self.note),
            ("What", self.what),
            ("Why", self.why),
            ("Done", self.done),
            ("Look further", self.look),
        )
        return tuple((label, one_line(text, _LINE_LIMIT)) for label, text in pairs if text)

    def body(self) -> str:
        """The lines as plain text."""
        return "\n".join(f"{label}: {text}" for label, text in self.lines())

    def with_note(self, note: str) -> Notice:
        """The same notice, with the reason why it comes on this channel."""
        return replace(self, note=note)


def one_line(text: str, longest: int) -> str:
    """The text as one printable line of at most about `longest` characters."""
    return printable(" ".join(text.split()), longest)


def as_severe(severity: MessageSeverity, least: MessageSeverity) -> bool:
    """Whether a notice is at least as severe as a channel asks for."""
    return SEVERITIES.index(severity) >= SEVERITIES.index(least)
