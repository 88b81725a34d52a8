"""No restart: the watch only reports."""

from __future__ import annotations

from midwatch.agents.policies.base import Clause, PolicyChoice
from midwatch.agents.policies.conditions import Past
from midwatch.streams.records import Incident


def judge(_clause: Clause, incident: Incident, _past: Past) -> PolicyChoice:
    """Never a restart."""
    return PolicyChoice("stop", f"this policy does not restart after a {incident.verdict.mode or 'end'}")
