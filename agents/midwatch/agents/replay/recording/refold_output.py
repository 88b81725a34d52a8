"""The output of `midwatch replay --recording`. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from midwatch.agents.replay import output as report
from midwatch.agents.replay.recording.recording_file import Recording
from midwatch.agents.replay.recording.refold import Refolded
from midwatch.agents.replay.replayed import Replayed
from midwatch.streams.records import Decision, Finding, Incident, Verdict


def replayed(recording: Recording, refolded: Refolded) -> Replayed:
    """The last verdict and decision on the job, in the shape that replay has for log files."""
    head = recording.head
    settled = [r for r in refolded.records if isinstance(r, Incident) and r.state == "settled"]
    verdict = settled[-1].verdict if settled else Verdict(state="unknown", error_type="")
    judged = [d for d in refolded.decisions if d.incident] or list(refolded.decisions)
    nothing = Decision(head.job, 0, "", 0, "none", head.policy, "no attempt has ended yet", 0, head.acting)
    found: dict[tuple[int, str], Finding] = {}
    for record in refolded.records:
        if isinstance(record, Finding) and record.open:
            found.setdefault((record.attempt, record.kind), record)
    return Replayed(
        job=head.job,
        verdict=verdict,
        decision=judged[-1] if judged else nothing,
        findings=tuple(found.values()),
        evidence=settled[-1].evidence if settled else (),
        hits=refolded.hits,
        assumed=_assumed(recording),
        rivals=settled[-1].other_candidates if settled else (),
    )


def as_plain(recording: Recording, refolded: Refolded) -> dict[str, Any]:
    """The JSON object of `replay FILE`, with every incident and decision in full."""
    return {
        **report.as_plain(replayed(recording, refolded)),
        "incidents": [msgspec.to_builtins(r) for r in refolded.records if isinstance(r, Incident)],
        "decisions": [msgspec.to_builtins(d) for d in refolded.decisions],
        "differences": list(refolded.differences),
    }


def as_text(recording: Recording, refolded: Refolded) -> list[str]:
    """The lines for a person."""
    lines = report.as_text(replayed(recording, refolded))
    return [*lines, *(f"  differs   {difference}" for difference in refolded.differences)]


def _assumed(recording: Recording) -> tuple[str, ...]:
    head = recording.head
    assumed: tuple[str, ...] = ()
    if not recording.rules:
        assumed = (f"the policy {head.policy} is the one on this machine",)
    if head.events.cut_ms is None:
        return assumed
    return (*assumed, f"the log of events has lost all records before offset {head.events.first_offset}")
