"""Log files as the chunks that a shipper would send. Pure: names and bytes in, chunks out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from midwatch.rules.matching.hits import Match
from midwatch.streams.lines import blocks
from midwatch.streams.lines.normalise import normalise, whole_lines
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Chunk, Generation, Origin, Section

_CHUNK = 256 * 1024
_TAIL = 64 * 1024
_QUARTER = 900.0
_LOOK_BACK = 200  # lines searched for a printed time above one that has none

_ANSI = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])?")
NODE = "replay"
INCARNATION = "replay:file:0"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file at rest. `modified`: seconds since 1970."""

    path: str
    content: bytes
    modified: float


def origin_of(job: str) -> Origin:
    """The origin of lines that no shipper sent: one node and one start stand for all."""
    return Origin(job, NODE, 1, INCARNATION, "", NODE)


def chunks(job: str, file: LogFile, index: int) -> Iterator[Chunk]:
    """The file's chunks in the order of its lines. A chunk repeats the open blocks of the chunk before it."""
    origin = origin_of(job)
    generation = Generation(0, index, file.path)
    unfinished: blocks.Unfinished = ()
    offset, number, size = 0, 1, len(file.content)
    while offset < size:
        block = file.content[offset : offset + _CHUNK]
        if offset + len(block) < size:
            whole = whole_lines(block)
            block = block[:whole] if whole else file.content[offset : _next_line(file.content, offset)]
        lines = normalise(block)
        end = offset + len(block)
        if lines.lines:
            section = Section(
                path=file.path,
                generation=generation,
                size=len(lines.text),
                lines=lines.lines,
                anchors=lines.placed(offset, number),
                end=end,
                read_before=0.0,
                read_at=file.modified,
            )
            repeated = blocks.fitting(unfinished)
            unfinished = blocks.follow(repeated, section, lines.text)
            section, text = blocks.with_context(section, lines.text, repeated)
            yield Chunk(origin, (section,), text)
        offset, number = end, number + lines.raw_lines


def undated(file: LogFile, files: Sequence[LogFile]) -> float:
    """The time of lines that stand above the first printed time. Seconds, in the zone that the files print.

    It is the first printed time of the file, or the file's last write if the file prints none. Zones differ
    by quarters of an hour. So the last write moves by as many quarters as bring it closest to the latest
    printed time of all files.
    """
    first = _first_printed(file.content[:_TAIL].splitlines(), file.modified)
    if first is not None:
        return first
    printed = [time for each in files if (time := _last_printed(each)) is not None]
    if not printed:
        return file.modified
    quarters = round((file.modified - max(printed)) / _QUARTER)
    return file.modified - quarters * _QUARTER


def as_printed(file: LogFile, number: int, text: str) -> str:
    """The line of that number as the file holds it, colours included. `text` is the normalised line.

    The result is `text` itself if the two differ in more than colours. Then normalising removed a secret or
    capped the line.
    """
    raw = file.content.split(b"\n", number)[number - 1 : number]
    for segment in raw[0].split(b"\r") if raw else ():
        shown = _ANSI.sub(b"", segment).replace(b"\0", b"").decode("utf-8", "replace")
        if shown and shown == text:
            return segment.decode("utf-8", "replace")
    return text


def _last_printed(file: LogFile) -> float | None:
    return _first_printed(reversed(file.content[-_TAIL:].splitlines()), file.modified)


def _first_printed(lines: Iterable[bytes], modified: float) -> float | None:
    for line in lines:
        printed = printed_time(line, read_at=modified)
        if printed is not None:
            return printed
    return None


def _next_line(content: bytes, offset: int) -> int:
    end = content.find(b"\n", offset)
    return len(content) if end < 0 else end + 1


class PrintedTimes:
    """The time of a line in a file at rest: the printed time of the line, or of the nearest line above.

    Nobody watched the file grow, so no read confirms a printed time. `otherwise` is the time of lines above
    the first printed one; see `undated`.
    """

    def __init__(self, otherwise: float) -> None:
        self._otherwise = otherwise
        self._latest: dict[str, float] = {}

    def __call__(self, section: Section, text: bytes, hit: Match) -> float:
        """As `midwatch.agents.match.chunk_hits.When`. The caller must keep the order of the lines."""
        printed = self._printed(section, text, hit)
        if printed is None:
            return self._latest.get(section.path, self._otherwise)
        self._latest[section.path] = printed
        return printed

    def _printed(self, section: Section, text: bytes, hit: Match) -> float | None:
        end, floor = hit.end, _behind_context(section, text)
        for _ in range(_LOOK_BACK):
            start = text.rfind(b"\n", 0, end) + 1
            printed = printed_time(text[start:end], read_at=section.read_at)
            if printed is not None or start <= floor:
                return printed
            end = start - 1
        return None


def _behind_context(section: Section, text: bytes) -> int:
    """The offset of the first line that no earlier section had."""
    start = 0
    for _ in range(section.context):
        start = text.index(b"\n", start) + 1
    return start
