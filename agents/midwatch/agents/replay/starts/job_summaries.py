"""Job summaries: LSF writes one behind the output of each job, and jobs may share a file."""

from __future__ import annotations

from collections.abc import Iterator

from midwatch.agents.replay.endings.said_at_any_end import is_said_at_any_end
from midwatch.agents.replay.reading.log_files import LogFile, text_of

END = b"The output (if any) is above this job summary."
"""The last sentence of a summary: what it tells of stands above it."""
_NOTE = b"PS:"  # LSF's note on another file, the last words of a summary
_BEHIND = 3  # lines that show that another job has written behind the summary


def behind_job_summaries(file: LogFile) -> Iterator[tuple[int, int]]:
    """The places (offset, number) behind each summary below which another job wrote. Raises OSError."""
    text, at, number = text_of(file), 0, 1
    while (found := text.find(END, at)) >= 0:
        begin = text.find(b"\n", found) + 1
        if not begin:
            return
        number += text.count(b"\n", at, begin)
        at = begin
        if _is_followed(text, at):
            yield at, number


def _is_followed(text: bytes, at: int) -> bool:
    written = 0
    while at < len(text) and written < _BEHIND:
        end = text.find(b"\n", at) + 1 or len(text)
        line = text[at:end].strip()
        written += not (is_said_at_any_end(line) or line.startswith(_NOTE))
        at = end
    return written == _BEHIND
