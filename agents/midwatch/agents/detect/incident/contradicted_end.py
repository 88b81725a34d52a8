"""A good end that an exception contradicts: the script pipes its trainer, and the pipe hides the exit code.

The scheduler's word stays the verdict. A finding tells a person of the exception.
"""

from __future__ import annotations

from midwatch.agents.detect.diagnosis.noted_lines import ended_its_process
from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Verdict

CONTRADICTED = "end_contradicted"


def note_contradiction(turn: Turn, verdict: Verdict) -> None:
    """Open a finding if the job ended well and no step came behind an exception that left its script.

    The job's own word of success, or its last step, outweighs the exception.
    """
    state = turn.state
    if verdict.state != "healthy" or verdict.mode != "success" or state.succeeded:
        return
    if state.step is not None and state.total is not None and state.step >= state.total:
        return
    left = next((each.hit.line for each in state.held if ended_its_process(each.hit)), None)
    if left is not None:
        detail = (
            f"the job ended with exit code 0, but an exception left its script: {left.text.strip()}; "
            "a pipe such as `| tee` hides an exit code unless the script sets pipefail"
        )
        turn.open_finding(CONTRADICTED, detail, lines=(left,))
