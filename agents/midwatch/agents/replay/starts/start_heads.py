"""Start heads: what a start prints first, printed again behind a process's end: another start's. Pure.

The file's first lines are a head, and so are the first lines behind each end. Ranks of one start print theirs
before any of them ends. Stacks, summaries, steps and indented lines are no head. Behind a shell's word that a
signal ended its command, the file's first two lines are enough.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import re2

from midwatch.agents.replay.reading.log_files import LogFile, text_of
from midwatch.agents.replay.starts.job_summaries import END
from midwatch.agents.replay.starts.start_words import LETTERS, letters, masked
from midwatch.agents.replay.went_on.aftermath import ordinary
from midwatch.agents.replay.went_on.process_ends import ProcessEnd, process_ends, speaks_of_many

_HEAD = 60  # lines
_BYTES = 128 * 1024
_ROW = 3
_ROWS = 4
"""So many rows of lines are printed again, of the file's first lines or of those behind another exception."""
_FIRST = 2  # lines that no other part of a start prints in this order
_NEAR = 12  # lines behind an exception in which a warning stands again

_MODULE = re.compile(rb'  File "([^"\n]+)", line \d+, in <module> *\n')
_WARNING = re.compile(rb"(\S+\.py):\d+: \w*Warning: .*")
_NO_HEAD = re.compile(rb"\A\s|(?i:\b(?:step|epoch|iter\w*|loss)\b[ =:\[]+\d)")
"""Each rank's steps have the same words."""

# torchrun's agent is alive behind the end of a worker, and may import what its workers imported.
_AGENT_LIVES = re.compile(rb"closing signal SIG|\bfailed \(exitcode: -?\d+\) local_rank: ")
# What a shell prints of its only command stands behind whatever stands in the line, mostly a bar.
_KILLED = re2.compile(
    rb"(?m)(?:^|\]|\bit/s|\bs/it)(?:Killed|Terminated|Segmentation fault(?: \(core dumped\))?) *\n"
)
# The agent itself was ended by a signal, and the first words of another one follow.
_AGENT_ENDED = re.compile(rb"\bSignalException: Process \d+ got signal: \d+ *\n\Z")
_AGENT_BEGINS = re.compile(
    rb"[^\n]*\n?[^\n]*\*{20,} *\n[^\n]*Setting OMP_NUM_THREADS environment variable for each process"
)
_HEADING = re.compile(rb"[^\w\s]{3,}\s*\S")

_Row = tuple[bytes, ...]


def heads_behind_ends(file: LogFile) -> Iterator[tuple[int, int]]:
    """The places (offset, number) behind ends where a start's first lines stand again.

    Raises OSError.
    """
    text = text_of(file)
    ends = list(process_ends(text))
    stops = [*(end.begin for end in ends), len(text)]
    first = other = _rows(text, 0, stops[0])
    above = 0
    for end, stop in zip(ends, stops[1:], strict=True):
        if not end.sure:
            continue  # a loop may have caught it
        if text.find(END, end.offset, stop) >= 0 or _AGENT_LIVES.search(text, end.offset, stop):
            continue  # behind its job's summary the next job begins, behind its agent's end the next start
        rows = _rows(text, end.offset, stop)
        again = len(rows & first) >= _ROWS or len(rows & other) >= _ROWS
        again = again or _warns_again(text, above, end) or _is_followed_by_an_agent(text, end)
        if again or _begins_again(text, end.offset, stops[0]):
            yield end.offset, end.number
        other, above = other | rows, end.offset
    yield from _behind_kills(text, stops[0])


def _is_followed_by_an_agent(text: bytes, end: ProcessEnd) -> bool:
    """Whether a signal ended torchrun's agent, and the next one begins right behind it."""
    ended = _AGENT_ENDED.search(text, end.begin, end.offset)
    return ended is not None and _AGENT_BEGINS.match(text, end.offset) is not None


def _behind_kills(text: bytes, first_end: int) -> Iterator[tuple[int, int]]:
    """The places behind a shell's word on a signal where the file's very first lines stand again."""
    for killed in _KILLED.finditer(text):
        if _stands_again(text, killed.end(), min(first_end, killed.start())):
            yield killed.end(), text.count(b"\n", 0, killed.end()) + 1


def _begins_again(text: bytes, at: int, first_end: int) -> bool:
    """Whether the file's very first lines stand right there again: headings, as a batch script prints them.

    What a program prints first, another rank of the same start may print there.
    """
    known = _first_lines(text, 0, first_end)
    return all(map(_HEADING.match, known)) and _stands_again(text, at, first_end)


def _stands_again(text: bytes, at: int, first_end: int) -> bool:
    """Whether the file's first two lines stand there again, and one process wrote the file."""
    known = _first_lines(text, 0, first_end)
    if len(known) < _FIRST or letters(known) < LETTERS:
        return False
    return known == _first_lines(text, at, len(text)) and not speaks_of_many(text)


def _first_lines(text: bytes, at: int, stop: int) -> list[bytes]:
    lines = text[at : min(at + _BYTES, stop)].split(b"\n", _NEAR)[:_NEAR]
    plain = [line for line in lines if line.strip() and not _NO_HEAD.search(line)]
    return list(map(masked, plain[:_FIRST]))


def _warns_again(text: bytes, above: int, end: ProcessEnd) -> bool:
    """Whether a warning of the script itself, behind its exception, stands above it, too.

    Python prints each warning once a process. Ranks of one start print the same one. So where a file speaks
    of ranks, it stands once above, from the end before (`above`) on.
    """
    scripts = set(_MODULE.findall(text, end.begin, end.offset))
    lines = text[end.offset : end.offset + _BYTES].split(b"\n", _NEAR)[:_NEAR]
    found = filter(None, map(_WARNING.match, lines))
    own = [each[0] + b"\n" for each in found if each[1] in scripts]
    times = [text.count(line, above, end.begin) for line in own]
    return 1 in times or (any(times) and not speaks_of_many(text))


def _rows(text: bytes, at: int, stop: int) -> frozenset[_Row]:
    """The rows of three lines among the first ones there, up to the next end or traceback."""
    near = text[at : min(at + _BYTES, stop)]
    if at + _BYTES >= stop == len(text):
        near += b"\n"  # the last line of all is whole without its line feed, too
    lines = near.partition(b"Traceback (most recent call last)")[0].split(b"\n")[:-1]
    plain = islice((line for line in lines if line.strip() and not _NO_HEAD.search(line)), _HEAD)
    words = [masked(line.encode()) for line in ordinary(each.decode("utf-8", "replace") for each in plain)]
    rows = (tuple(words[index : index + _ROW]) for index in range(len(words) - _ROW + 1))
    return frozenset(row for row in rows if len(set(row)) == _ROW and letters(row) >= LETTERS)
