"""No restart: the watch only says what it sees."""

from __future__ import annotations

from midwatch.agents.policies.base import Choice, Clause
from midwatch.streams.records import Incident


def judge(clause: Clause, incident: Incident) -> Choice:  # noqa: ARG001  # one signature for all judges
    """Never a restart."""
    return Choice("stop", f"this policy does not restart after a {incident.verdict.mode or 'end'}")
