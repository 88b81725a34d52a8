"""What `midwatch replay --recording` says. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from midwatch.agents.replay import output as report
from midwatch.agents.replay.job_replay import Replayed
from midwatch.agents.replay.recording.recording_file import Recording
from midwatch.agents.replay.recording.refold import Refolded
from midwatch.streams.records import Decision, Finding, Incident, Verdict


def replayed(recording: Recording, done: Refolded) -> Replayed:
    """The last word on the job, as replay gives it for log files."""
    head = recording.head
    settled = [r for r in done.records if isinstance(r, Incident) and r.state == "settled"]
    verdict = settled[-1].verdict if settled else Verdict(state="unknown", error_type="")
    judged = [d for d in done.decisions if d.incident] or list(done.decisions)
    nothing = Decision(head.job, 0, "", 0, "none", head.policy, "nothing has ended yet", 0, head.acting)
    found: dict[tuple[int, str], Finding] = {}
    for record in done.records:
        if isinstance(record, Finding) and record.open:
            found.setdefault((record.attempt, record.kind), record)
    return Replayed(
        job=head.job,
        verdict=verdict,
        decision=judged[-1] if judged else nothing,
        findings=tuple(found.values()),
        evidence=settled[-1].evidence if settled else (),
        hits=done.hits,
        assumed=_assumed(recording),
    )


def as_plain(recording: Recording, done: Refolded) -> dict[str, Any]:
    """The JSON object: that of `replay FILE`, and every incident and decision whole beside it."""
    return {
        **report.as_plain(replayed(recording, done)),
        "incidents": [msgspec.to_builtins(r) for r in done.records if isinstance(r, Incident)],
        "decisions": [msgspec.to_builtins(d) for d in done.decisions],
        "differences": list(done.differences),
    }


def as_text(recording: Recording, done: Refolded) -> list[str]:
    """The lines for a person."""
    lines = report.as_text(replayed(recording, done))
    return [*lines, *(f"  differs   {what}" for what in done.differences)]


def _assumed(recording: Recording) -> tuple[str, ...]:
    head = recording.head
    assumed: tuple[str, ...] = ()
    if not recording.rules:
        assumed = (f"the policy {head.policy} reads as it does here and now",)
    if head.events.cut_ms is None:
        return assumed
    return (*assumed, f"what stood in events before offset {head.events.first_offset} is deleted")
