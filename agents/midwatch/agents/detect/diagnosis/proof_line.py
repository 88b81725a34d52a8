"""The proof line: the root fields of a verdict, taken from one line of the log. Pure."""

from __future__ import annotations

from dataclasses import replace

from midwatch.streams.records import Line, Verdict


def proven_by(verdict: Verdict, line: Line) -> Verdict:
    """The verdict with this line as its root line. The rank is the launcher's, or the line's own word."""
    return replace(
        verdict,
        root_line=line.text,
        root_file=line.path,
        root_line_number=line.number,
        node=line.node,
        rank=line.rank if line.rank is not None else line.claimed_rank,
    )
