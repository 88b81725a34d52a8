"""Records: the frozen values that flow between the parts, one class for each kind.

`midwatch.streams.records.codec` turns them into bytes and back. Their units are:

- `*_ms`: milliseconds since 1970 by the broker's append time, unless a field says otherwise.
- `wall`, `read_at`: seconds since 1970 by a node's own clock. Subtract its offset before comparing nodes.
- `monotonic`: seconds of one shipper process.
- Byte offsets and line numbers: those of the user's file on disk. Line numbers begin at 1.
"""

from __future__ import annotations

from midwatch.streams.records.commands import Command, DeadLetter, Decision, Spec
from midwatch.streams.records.events import (
    Activation,
    Hit,
    HitCount,
    Hits,
    Line,
    Outcome,
    PersonAct,
    Progress,
    Rate,
    SchedulerFact,
    SpecEvent,
    Stop,
    Tick,
)
from midwatch.streams.records.incidents import (
    Alike,
    Chance,
    Finding,
    Forwarded,
    Incident,
    IncidentRecord,
    Rival,
    Verdict,
)
from midwatch.streams.records.logs import (
    LINES_READ,
    Anchor,
    CheckpointChoice,
    Chunk,
    Generation,
    Heartbeat,
    Origin,
    Section,
)
from midwatch.streams.records.rules import CURRENT, REFUSED, ForeignParts, InForce, RefusedRules, RuleBundle
from midwatch.streams.records.snapshot import DetectorMemory, Held, Loop, Member, Resumption, Snapshot, Spent
from midwatch.streams.records.words import Action, Mode, Phase, Role, Shows

Event = Hits | Heartbeat | SpecEvent | SchedulerFact | Outcome | PersonAct | Snapshot | Activation | Tick

__all__ = [
    "CURRENT",
    "LINES_READ",
    "REFUSED",
    "Action",
    "Activation",
    "Alike",
    "Anchor",
    "Chance",
    "CheckpointChoice",
    "Chunk",
    "Command",
    "DeadLetter",
    "Decision",
    "DetectorMemory",
    "Event",
    "Finding",
    "ForeignParts",
    "Forwarded",
    "Generation",
    "Heartbeat",
    "Held",
    "Hit",
    "HitCount",
    "Hits",
    "InForce",
    "Incident",
    "IncidentRecord",
    "Line",
    "Loop",
    "Member",
    "Mode",
    "Origin",
    "Outcome",
    "PersonAct",
    "Phase",
    "Progress",
    "Rate",
    "RefusedRules",
    "Resumption",
    "Rival",
    "Role",
    "RuleBundle",
    "SchedulerFact",
    "Section",
    "Shows",
    "Snapshot",
    "Spec",
    "SpecEvent",
    "Spent",
    "Stop",
    "Tick",
    "Verdict",
]
