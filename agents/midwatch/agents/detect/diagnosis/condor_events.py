"""HTCondor's events: which rules tell that a job lost its slot, which that it runs, and which job that is."""

from __future__ import annotations

import re

from midwatch.streams.records import Hit

EVICTED, REMOVED, RUNS_AGAIN = "condor_evicted", "condor_removed", "condor_runs"
LOST_ITS_SLOT = (EVICTED, "condor_shadow_exception", "condor_disconnected", "condor_node_lost", "condor_held")
"""Rules of events behind which HTCondor may run the job again by itself. A held one is released first."""
_JOB = re.compile(r"\b0\d\d \(([\d.]+)\) ")


def condor_job(hit: Hit) -> str:
    """The job of an event, as cluster, process and subprocess; empty if the line names none."""
    found = _JOB.search(hit.line.text)
    return "" if found is None else found[1]
