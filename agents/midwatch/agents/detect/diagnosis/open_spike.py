"""The open spike: an attempt failed, nothing says why, and its loss had jumped or was no number. Pure.

A spike ends no job by itself, so it explains only what no line and no scheduler explains. The same start may
meet it again or not. So a person decides.
"""

from __future__ import annotations

import math
from dataclasses import replace

from midwatch.agents.detect.diagnosis.proof_line import proven_by
from midwatch.streams.records import Finding, Line, Verdict
from midwatch.streams.records.error_types import family

SPIKE = "loss_spike"
"""The kind of the finding."""
_LOOK = "look at the data and the learning rate around that step, and start from a checkpoint before it"


def explained_by_spike(verdict: Verdict, spike: Finding | None, progress: Line | None) -> Verdict:
    """The verdict that names the open spike, if it names nothing else. `progress`: the last printed step."""
    if spike is None or verdict.state != "failed" or verdict.error_type != "unknown" or verdict.rule:
        return verdict
    finite = math.isfinite(float(spike.quantities.get("loss", "nan")))
    kind = SPIKE if finite else "numerical_instability"
    remedy = f"No line says why it ended. When it did, {spike.detail}: {_LOOK}."
    named = replace(verdict, error_type=kind, family=family(kind), transient=None, remedy=remedy)
    return named if progress is None else proven_by(named, progress)
