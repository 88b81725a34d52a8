"""Script starts: a file in which one script ended of an exception, and ended so again later.

An exception that leaves the script's own module ends its process, and so does a signal of which its shell
tells. So a later end of the same script, with other lines between them, is another start's. So is any behind
a process that never began its script, or behind long work. Ranks and workers of one start end one after the
other, too: a file that speaks of such is left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from midwatch.agents.replay.reading.log_files import LogFile, text_of
from midwatch.agents.replay.starts.job_summaries import END
from midwatch.agents.replay.starts.start_words import masked
from midwatch.agents.replay.went_on.aftermath import ENOUGH, ordinary
from midwatch.agents.replay.went_on.process_ends import MODULE, ProcessEnd, process_ends, speaks_of_many

_BETWEEN = 3  # lines that the next start has printed before it ended, unless they are those of a start
_FIRST_LINES = 64 * 1024  # bytes of the file in which its first lines stand
_A_SCRIPT = b".py"  # a launcher has none, and tells of its child that never began
_WARNING = re.compile(rb"\S+\.py:\d+: \w*Warning: [^\n]*\n")


def behind_ended_scripts(file: LogFile) -> Iterator[tuple[int, int]]:
    """The places (offset, number) behind each end of a script that ends so again. Raises OSError."""
    text = text_of(file)
    if speaks_of_many(text):
        return
    ends = (each for each in process_ends(text) if each.function == MODULE or not each.function)
    first = text[:_FIRST_LINES].split(b"\n")
    for one, other in pairwise(ends):
        between = text[one.offset : other.begin]
        same = _name(one.script) == _name(other.script)
        never_began = not one.function and other.script.endswith(_A_SCRIPT)
        if END in between:
            continue  # behind its job's summary the next job begins
        begun = (
            between.count(b"\n") >= _BETWEEN
            or _a_library_warns_again(text, one.begin, between)
            or (_begins_alike(first, between) and _raised(text, one) != _raised(text, other))
        )
        if (same or never_began or _worked(between)) and other.function and begun and between.strip():
            yield one.offset, one.number


def _worked(between: bytes) -> bool:
    """Whether so much work stands there that the second script failed of nothing that the first one left."""
    lines = (line.decode("utf-8", "replace") for line in between.splitlines())
    return sum(1 for _ in islice(ordinary(lines), ENOUGH)) == ENOUGH


def _name(script: bytes) -> bytes:
    """The name without its folders: a shell and a traceback name one script in two ways."""
    return script.rpartition(b"/")[2]


def _a_library_warns_again(text: bytes, end: int, between: bytes) -> bool:
    """Whether a warning stands there that stands above the end, too: Python prints each once a process."""
    warning = _WARNING.match(between)
    return warning is not None and text.find(warning[0], 0, end) >= 0


def _begins_alike(first: Sequence[bytes], between: bytes) -> bool:
    """Whether the file's first lines stand there, and nothing else."""
    lines = list(map(masked, between.splitlines()))
    return lines == list(map(masked, first[: len(lines)]))


def _raised(text: bytes, end: ProcessEnd) -> bytes:
    """The exception. Ranks of one start raise the same one."""
    return text[end.begin : end.offset].rstrip().rpartition(b"\n")[2]
