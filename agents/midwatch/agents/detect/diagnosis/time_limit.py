"""The verdict on a scheduler's time limit: what a next start could resume from. Pure."""

from __future__ import annotations

from dataclasses import replace

from midwatch.streams.records import Verdict

_MORE_TIME = "Ask for more time, or chain starts that resume from a checkpoint."


def with_way_on(verdict: Verdict, checkpoints: str) -> Verdict:
    """The verdict with a remedy for a time limit. Any other verdict stays as it is.

    `checkpoints`: the directory of the job's checkpoints; "" if its spec names none.
    """
    if not verdict.at_time_limit:
        return verdict
    if verdict.step is None or not checkpoints:
        return verdict if verdict.rule else replace(verdict, remedy=_MORE_TIME)
    way_on = (
        f"The time limit was reached at step {verdict.step}. A start that resumes from the checkpoints in "
        f"{checkpoints} goes on. With `on_time_limit: continue` in its policy midwatch starts it again."
    )
    return replace(verdict, remedy=way_on)
