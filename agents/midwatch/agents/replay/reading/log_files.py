"""Log files as the chunks that a shipper would send. It reads blocks, so a large file costs no memory."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.agents.replay.reading.archives import Advance, LogReader, nothing
from midwatch.streams.line_feeds import line_feeds
from midwatch.streams.lines import blocks
from midwatch.streams.lines.envelopes import unwrapped
from midwatch.streams.lines.escapes import without_escapes
from midwatch.streams.lines.normalise import LONGEST_LINE, LONGEST_RAW_LINE, normalise, whole_lines
from midwatch.streams.lines.redaction import redact
from midwatch.streams.records import Chunk, Generation, Origin, Section

_CHUNK = 256 * 1024
_EDGE = 64 * 1024
_MOST_AT_ONCE = 2 * 1024 * 1024
_MOST_OF_AN_END = 32 * 1024 * 1024
_OF_AN_END = (
    b"Traceback (most recent call last)",
    b": error: ",  # argparse
    b"can't open file",  # the interpreter
    b": line ",  # a shell
    b"] failed (exitcode",  # an agent of torchrun
    b"is above this job summary",  # LSF
)
"""What stands where a process, or a job that shares a file, has ended."""
_CUT = 2044  # bytes: of a longer line a hit keeps 2048, less the parts of a character
_LINE_HEAD = 512  # bytes that are held of a line without an end
_RETURNS = re.compile(rb"\r+(?=\n)")
_COMMON = 32  # times that a piece may stand in one block

NODE = "replay"
INCARNATION = "replay:file:0"


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file at rest, or text in memory. `modified`: seconds since 1970.

    A file may hold several starts of a job. Then `start` is the offset and the number of the first line that
    counts, and `stop` the offset behind the last. Offsets count unpacked bytes.
    `ends_late`: what tells of an end below the file's last clock is as late as the job's last clock.
    """

    path: str
    content: bytes | Path
    modified: float
    start: tuple[int, int] = (0, 1)
    stop: int | None = None
    ends_late: bool = False

    def open(self, advance: Advance = nothing) -> LogReader:
        """A reader of its bytes up to `stop`, unpacked. Raises OSError."""
        return LogReader(self.content, advance, self.stop)

    def size(self) -> int:
        """Bytes on the disk. Raises OSError."""
        return len(self.content) if isinstance(self.content, bytes) else self.content.stat().st_size

    def head(self) -> bytes:
        """The first 64 KiB that count."""
        with self.open() as reader:
            _skip(reader, self.start[0])
            return _with_line_feeds(reader.read(_EDGE))

    def tail(self) -> bytes:
        """The last 64 KiB that count. An archive is unpacked for it from the beginning."""
        with self.open() as reader:
            plain = not reader.compressed and self.stop is None
            if plain and self.size() - self.start[0] > _EDGE:
                reader.skip_to_end(_EDGE)
            else:
                _skip(reader, self.start[0])
            last = b""
            while piece := reader.read(_EDGE):
                last = (last + piece)[-_EDGE:]
            return _with_line_feeds(last)


def _with_line_feeds(text: bytes) -> bytes:
    """The text with blanks for the returns in front of its line feeds: a terminal or Windows writes both.

    So each byte stays in its place.
    """
    return _RETURNS.sub(lambda found: b" " * len(found[0]), text) if b"\r\n" in text else text


def origin_of(job: str) -> Origin:
    """The origin of lines that no shipper sent: one node and one start stand for all."""
    return Origin(job, NODE, 1, INCARNATION, "", NODE)


def chunks(job: str, file: LogFile, index: int) -> Iterator[Chunk]:
    """The file's chunks in the order of its lines. A chunk repeats the open blocks of the chunk before it."""
    with file.open() as reader:
        yield from (chunk for chunk, _ in chunks_of(job, file, index, reader) if chunk is not None)


def chunks_of(job: str, file: LogFile, index: int, reader: LogReader) -> Iterator[tuple[Chunk | None, bool]]:
    """The same of an open file, each with whether the file ends there. None: a block without a line."""
    origin = origin_of(job)
    generation = Generation(0, index, file.path)
    unfinished: blocks.Unfinished = ()
    offset, number = file.start
    _skip(reader, offset)
    for block, last in _blocks(reader):
        lines = normalise(block)
        end, chunk = offset + len(block), None
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
            chunk = Chunk(origin, (section,), text)
        yield chunk, last
        offset, number = end, number + lines.raw_lines


def _skip(reader: LogReader, size: int) -> None:
    while size > 0 and (piece := reader.read(min(size, _CHUNK))):
        size -= len(piece)


def _blocks(reader: LogReader) -> Iterator[tuple[bytes, bool]]:
    """Blocks of whole lines, each with whether it is the last.

    A line longer than a block makes a block by itself, up to `LONGEST_RAW_LINE` bytes.
    """
    rest, size = b"", _CHUNK
    while True:
        # One byte more shows whether the file ends here.
        block = rest + reader.read(max(size + 1 - len(rest), 0))
        ends = len(block) <= size
        whole = len(block) if ends else whole_lines(block[:size])
        if size > _CHUNK:
            whole, size = block.find(b"\n", 0, size) + 1 or min(len(block), size), _CHUNK
        elif not whole:
            rest, size = block, LONGEST_RAW_LINE
            continue
        rest = block[whole:]
        yield block[:whole], ends and not rest
        if ends and not rest:
            return


def as_printed(file: LogFile, number: int, text: str) -> str:
    """The line of that number as the file holds it, colours included. `text` is the normalised line.

    A hit keeps the beginning of a long line. Then the result is the line without its colours, its first
    LONGEST_LINE bytes. It is `text` itself if the two differ in more, as where normalising removed a secret.
    """
    beginning = text.rstrip("\ufffd").encode()
    for segment in _raw_line(file, number).split(b"\r"):
        words = without_escapes(segment).replace(b"\0", b"")
        shown = words.decode("utf-8", "replace")
        if shown and shown == text:
            return segment.decode("utf-8", "replace")
        if len(beginning) > _CUT and (safe := redact(words)).startswith(beginning):
            return safe[:LONGEST_LINE].decode("utf-8", "replace")
    return text


def line_of(file: LogFile, number: int) -> str:
    """The line of that number, without colours. Of a line that a progress bar redraws, the last state."""
    segments = [without_escapes(each) for each in _words(_raw_line(file, number)).split(b"\r")]
    shown = next((each for each in reversed(segments) if each.strip()), b"")
    return shown.decode("utf-8", "replace")


def lines_behind(file: LogFile, number: int) -> Iterator[str]:
    """The lines behind the line of that number, without colours. Nothing if the file ends with that line.

    Of an envelope it gives the words, in which line feeds may stand.
    """
    with file.open() as reader:
        missing, rest = number, b""
        while piece := reader.read(_CHUNK):
            *whole, rest = (rest + piece).split(b"\n")
            for line in whole[missing:]:
                yield without_escapes(_words(line.rstrip(b"\r"))).decode("utf-8", "replace")
            missing = max(missing - len(whole), 0)
            if missing:
                rest = b""  # the beginning of a line that is not asked for
        if rest and not missing:
            yield without_escapes(_words(rest.rstrip(b"\r"))).decode("utf-8", "replace")


def lines_beside(
    file: LogFile, pieces: set[bytes], *, common: float = _COMMON
) -> Iterator[tuple[int, int, bytes]]:
    """The lines of those blocks that hold one of the pieces, each with its offset and number.

    A piece that stands in one block more than `common` times is looked for no further. Of a line that is
    longer than a block only the beginning is held: a progress bar may never end its line. Raises OSError.
    """
    offset, number, rest, left_out, rare, beside = 0, 1, b"", 0, set(pieces), False
    with file.open() as reader:
        while block := reader.read(_CHUNK):
            text = rest + block
            size = text.rfind(b"\n") + 1
            if not size and len(text) > _CHUNK:
                rest, left_out = text[:_LINE_HEAD], left_out + len(text) - _LINE_HEAD
                continue
            whole, rest = _with_line_feeds(text[:size]), text[size:]
            counts = {piece: whole.count(piece) for piece in rare}
            rare -= {piece for piece, count in counts.items() if count > common}
            behind = left_out if size else 0  # of its first line
            beside = any(counts.values())
            if beside:
                place, beyond = offset, behind
                for index, line in enumerate(whole.split(b"\n")[:-1]):
                    yield place, number + index, line
                    place, beyond = place + len(line) + 1 + beyond, 0
            offset, number = offset + size + behind, number + line_feeds(whole)
            left_out -= behind
    if rest and (beside or any(piece in rest for piece in rare)):
        yield offset, number, rest.rstrip(b"\r")


def text_of(file: LogFile) -> bytes:
    """The whole text of a file of at most 2 MiB, or of 32 MiB if it tells of an end; else nothing.

    So the memory does not grow with a file in which no process ended. Raises OSError.
    """
    with file.open() as reader:
        text = reader.read(_MOST_AT_ONCE + 1)
    if len(text) > _MOST_AT_ONCE:
        text = b""
        if _tells_of_an_end(file):
            with file.open() as reader:
                text = reader.read(_MOST_OF_AN_END + 1)
    return _with_line_feeds(text) if len(text) <= _MOST_OF_AN_END else b""


def _tells_of_an_end(file: LogFile) -> bool:
    size, rest = 0, b""
    with file.open() as reader:
        while size <= _MOST_OF_AN_END and (piece := reader.read(_CHUNK)):
            block = rest + piece
            if any(words in block for words in _OF_AN_END):
                return True
            size, rest = size + len(piece), block[-_LINE_HEAD:]
    return False


def line_count(file: LogFile) -> int:
    """The lines of the file. A last line counts without its line feed, too."""
    lines, last = 0, b"\n"
    with file.open() as reader:
        while piece := reader.read(_CHUNK):
            lines, last = lines + line_feeds(piece), piece[-1:]
    return lines + (last != b"\n")


def up_to(file: LogFile, number: int) -> LogFile:
    """The file as if it ended behind the line of that number. Raises OSError."""
    stop, missing = 0, number
    with file.open() as reader:
        while missing and (piece := reader.read(_CHUNK)):
            lines = line_feeds(piece)
            if lines < missing:
                missing, stop = missing - lines, stop + len(piece)
                continue
            end = 0
            for _ in range(missing):
                end = piece.index(b"\n", end) + 1
            missing, stop = 0, stop + end
    return replace(file, stop=stop)


def last_lines(file: LogFile) -> list[tuple[int, bytes]]:
    """The last whole lines of the file with their numbers, without colours, from its last 64 KiB."""
    tail = file.tail()
    lines = tail.removesuffix(b"\n").split(b"\n")
    whole = list(enumerate(lines, line_count(file) - len(lines) + 1))[0 if len(tail) < _EDGE else 1 :]
    return [
        (number, without_escapes(words).rstrip(b"\r").rpartition(b"\r")[2])
        for number, line in whole
        for words in _words(line).split(b"\n")
    ]


def _words(line: bytes) -> bytes:
    text = unwrapped(line)
    return line if text is None else text


def _raw_line(file: LogFile, number: int) -> bytes:
    """The line of that number, from 1, or its first `LONGEST_RAW_LINE` bytes."""
    with file.open() as reader:
        missing = number - 1
        while piece := reader.read(_CHUNK):
            lines = line_feeds(piece)
            if lines < missing:
                missing -= lines
                continue
            start = 0
            for _ in range(missing):
                start = piece.index(b"\n", start) + 1
            return (piece[start:] + reader.read(LONGEST_RAW_LINE)).split(b"\n", 1)[0]
    return b""
