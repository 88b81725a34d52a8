"""No restart: the watch only reports."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.streams.records import Incident


def judge(clause: Clause, incident: Incident) -> PolicyChoice:  # noqa: ARG001  # one signature for all judges
    """Never a restart."""
    return PolicyChoice("stop", f"this policy does not restart after a {incident.verdict.mode or 'end'}")
