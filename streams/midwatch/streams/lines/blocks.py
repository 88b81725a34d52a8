"""Blocks of lines that belong together: a speaker's Python traceback up to its exception line. Pure.

If a chunk ends within a traceback, the next chunk repeats the traceback's lines. So the exception line
arrives with its frames, and a rule over the whole block finds what it would find in one chunk. A block is
its first and its latest lines, whatever its length and wherever it was cut.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from midwatch.streams.lines.launcher_prefix import DOMAIN
from midwatch.streams.lines.normalise import places
from midwatch.streams.records import Anchor, Section

LONGEST_BLOCK = 64
"""The most lines kept of an unfinished block: its first and its latest."""

LARGEST_CONTEXT = 64 * 1024
"""The most bytes kept of an unfinished block, and repeated in one chunk. The oldest go first."""

BLOCK_OPENS = b"Traceback (most recent call last):"
_OPENINGS = (BLOCK_OPENS, b"Original " + BLOCK_OPENS)  # of a data loader's worker
# The speaker's prefix in a stream of many ranks: `[rank3]: `, `3: `, `(Trainer pid=77, ip=10.0.0.1) `,
# `gpu-7: `, `trainer-1  | `, `[pod/toy-0/trainer] `, `gpu7.toys.edu: `, `trainer/0 `.
_NAMED = (
    rb"(?=[^\d\s.:]{1,62}+\d)[a-z][\w-]{0,62}+(?:\.[\w-]{1,62}+){0,8}?\.%b(?: \d{1,6})?: "
    rb"|[A-Za-z][\w.-]{0,62}+/\d{1,6} " % DOMAIN.encode()
)
_PREFIXES = (
    rb"(?: {1,5}(?=\d{1,6}: )|[A-Za-z][\w.-]{0,62}+(?<=\d)(?:: | +\| )|\d{1,3}(?:\.\d{1,3}){3}: "
    rb"|\[pod/[^\]\n]{1,120}\] |" + _NAMED + rb")?"
    rb"(?:\[rank\d+\]:? ?|\[[A-Za-z]\w{0,30}\d\]: ?|\[\d+(?:,[\w:-]{1,24}){0,2}\]<std\w{3,4}>:"
    rb"|\d{1,6}: |\([^()]{0,80}pid=\d+[^()]{0,80}\) )*"
)
_SPEAKER = re.compile(_PREFIXES)
# Frames come in runs: one step takes many lines of one speaker. Some prefixes may have one blank more. Then
# the blank after the prefix may not be the frame's, so each line is checked alone. A look ahead takes the
# prefixes whole or not at all: before Python 3.11.5 possessive repeats err (gh-106052).
# A padded label ends a run: it is another speaker's.
_FRAMES = re.compile(
    rb"(?=(%b))\1(?:(?<![\]:])|(?<=>:))[ \t\v\f\r][^\n]*"
    rb"(?:\n\1(?! {1,5}\d{1,6}: )[ \t\v\f\r][^\n]*)*" % _PREFIXES
)
# Lines that have no prefix and open no block.
_UNSPOKEN = re.compile(
    rb"(?:(?!\[[A-Za-z]\w{0,30}\d\]|\[\d+[\],]|\[pod/| {0,5}\d{1,6}: |\d{1,3}\.\d"
    rb"|[A-Za-z][\w.-]{0,62}+(?<=\d)(?:: | +\| )|\(|Traceback \(|Original T|" + _NAMED + rb")[^\n]*\n)*"
)
_EXCEPTION = re.compile(rb"[A-Za-z_][\w.]*(?:: .*|:?)\Z", re.DOTALL)
_RANK = re.compile(
    rb"\[(?:rank|default)(\d+)\]|\[\d+,(\d+)\]<std|(?:\A {0,5}|\) |\A[a-z][\w.-]* )(\d{1,6}): "
)
_PATIENCE = 16  # lines of the speaker in a row outside the traceback, after which its block is dropped


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A line of an unfinished block, and its place in the file."""

    text: bytes
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class UnfinishedBlock:
    """A traceback whose exception line did not come yet.

    Its lines include the speaker's lines in between. `foreign` counts the latest of these in a row, and too
    many of them drop the block. A reader of the repeated lines must reach the same count.
    """

    speaker: bytes
    lines: tuple[BlockLine, ...]
    foreign: int = 0

    @property
    def size(self) -> int:
        """Bytes of its repeated lines."""
        return sum(len(line.text) + 1 for line in self.lines)


Unfinished = tuple[UnfinishedBlock, ...]


@dataclass(frozen=True, slots=True)
class TracebackBlock:
    """A traceback that has ended. `start` and `end` span its exception line, without line feed.

    `text` joins the traceback's lines without their speaker: the header, the frames and the exception line.
    A long traceback keeps only its latest frames (`LONGEST_BLOCK` lines, `LARGEST_CONTEXT` bytes).
    """

    start: int
    end: int
    text: bytes


@dataclass(slots=True)
class _Open:
    speaker: bytes
    before: tuple[BlockLine, ...] = ()
    runs: list[tuple[int, int]] = field(default_factory=list)
    foreign: int = 0

    def take(self, run: tuple[int, int], foreign: int = 0) -> None:
        """Adds one line of the block, or a run of its lines without the last line feed."""
        self.runs.append(run)
        self.foreign = foreign

    def positions(self, text: bytes) -> list[int]:
        """Where each line of the block begins in the text."""
        found: list[int] = []
        for start, end in self.runs:
            position = start
            while position <= end:
                found.append(position)
                position = (text.find(b"\n", position, end) + 1) or end + 1
        return found


def claimed_rank(line: bytes) -> int | None:
    """The rank that a line claims by a launcher's prefix. It is evidence, never identity."""
    match = _RANK.search(line[: _prefix(line)])
    return int(next(g for g in match.groups() if g is not None)) if match else None


def follow(unfinished: Unfinished, section: Section, text: bytes) -> Unfinished:
    """The blocks of one file that are unfinished after these lines (without context)."""
    if not unfinished and BLOCK_OPENS not in text:
        return ()
    opened = {block.speaker: _Open(block.speaker, block.lines, [], block.foreign) for block in unfinished}
    for _ in _ended(text, opened):
        pass
    return _extended(opened.values(), section, text)


def finished(text: bytes) -> Iterator[TracebackBlock]:
    """The tracebacks that begin and end in a text of whole lines, in the order of their last lines.

    For a section that opens with its context, these include tracebacks that only the context holds.
    """
    for block, start, end in _ended(text, {}):
        yield TracebackBlock(
            start, end, _lines_before_last(block, text) + text[start + len(block.speaker) : end]
        )


def _lines_before_last(block: _Open, text: bytes) -> bytes:
    """The kept lines of a block except its last: header and frames, each with a line feed."""
    speaker = block.speaker
    sizes = [text.count(b"\n", start, end) + 1 for start, end in block.runs]
    if sum(sizes) <= LONGEST_BLOCK and sum(end - start + 1 for start, end in block.runs) <= LARGEST_CONTEXT:
        parts = [text[start + len(speaker) : end] for start, end in block.runs]
        if speaker:
            parts = [part.replace(b"\n" + speaker, b"\n") for part in parts]
    else:
        kept = _kept([_line(text, position) for position in block.positions(text)])
        parts = [line[len(speaker) :] for line in kept]
    traceback = [part for index, part in enumerate(parts) if index == 0 or part[:1].isspace()]
    return b"\n".join([*traceback, b""])


def fitting(unfinished: Unfinished, room: int = LARGEST_CONTEXT) -> Unfinished:
    """The blocks that one chunk may repeat: the youngest, up to `room` bytes."""
    kept, size = [], 0
    for block in sorted(unfinished, key=lambda b: -b.lines[0].offset):
        size += block.size
        if size > room:
            break
        kept.append(block)
    return tuple(kept)


def context(unfinished: Unfinished) -> tuple[bytes, tuple[Anchor, ...], int]:
    """Text, anchors and count of the lines to repeat, in the order of the file."""
    lines = sorted((line for block in unfinished for line in block.lines), key=lambda line: line.offset)
    anchors = tuple(Anchor(i, line.offset, line.number) for i, line in enumerate(lines))
    return b"".join(line.text + b"\n" for line in lines), anchors, len(lines)


def with_context(section: Section, text: bytes, unfinished: Unfinished) -> tuple[Section, bytes]:
    """The section and its text, opened with the lines of these blocks of its file."""
    if not unfinished:
        return section, text
    before, anchors, count = context(unfinished)
    shifted = tuple(Anchor(a.index + count, a.offset, a.number) for a in section.anchors)
    longer = replace(
        section,
        size=section.size + len(before),
        lines=section.lines + count,
        anchors=anchors + shifted,
        context=count,
    )
    return longer, before + text


def _ended(text: bytes, opened: dict[bytes, _Open]) -> Iterator[tuple[_Open, int, int]]:
    """The blocks that end in the text, each with the span of its last line. Updates `opened`."""
    position = 0
    while position < len(text):
        if not opened:
            header = text.find(BLOCK_OPENS, position)
            if header < 0:
                return
            position = text.rfind(b"\n", position, header) + 1 or position
        elif b"" not in opened and (skipped := _UNSPOKEN.match(text, position)):
            position = skipped.end()
        if frames := _FRAMES.match(text, position):
            if block := opened.get(frames[1]) or opened.get(_without_blank(frames[1])):
                block.take(frames.span())
            position = frames.end() + 1
            continue
        end = text.find(b"\n", position)
        if end < 0:
            end = len(text)
        if ended := _taken(text[position:end], (position, end), opened):
            yield ended, position, end
        position = end + 1


def _taken(line: bytes, span: tuple[int, int], opened: dict[bytes, _Open]) -> _Open | None:
    """The block that ends with this line at `span`, if any."""
    prefix = _prefix(line)
    speaker = line[:prefix]
    if line.startswith(_OPENINGS, prefix):
        opened[speaker] = _Open(speaker, (), [span])
        return None
    block = opened.get(speaker)
    if block is None and (block := opened.get(_without_blank(speaker))):
        speaker = block.speaker
        prefix = len(speaker)
    if block is None:
        return None
    if line[prefix : prefix + 1].isspace():
        block.take(span)
    elif _EXCEPTION.match(line, prefix):
        return opened.pop(speaker)
    elif block.foreign >= _PATIENCE:
        del opened[speaker]
    else:
        block.take(span, block.foreign + 1)
    return None


def _without_blank(speaker: bytes) -> bytes:
    """The speaker, if the blank behind its bracket is the line's own: `torchrun --tee` prints none there."""
    return speaker[:-1] if speaker.endswith(b"]: ") else speaker


def _prefix(line: bytes) -> int:
    match = _SPEAKER.match(line)
    return match.end() if match else 0


def _line(text: bytes, position: int) -> bytes:
    end = text.find(b"\n", position)
    return text[position : end if end >= 0 else len(text)]


def _kept(lines: Sequence[bytes]) -> list[bytes]:
    return [lines[index] for index in _window([len(line) for line in lines])]


def _window(sizes: Sequence[int]) -> list[int]:
    """The indexes of a block's kept lines: the first, and the latest that fit.

    A block that was shortened before keeps the same lines as one that was not.
    """
    room, first = LARGEST_CONTEXT - sizes[0] - 1, len(sizes)
    while first > 1 and len(sizes) - first < LONGEST_BLOCK - 1 and room > sizes[first - 1]:
        first -= 1
        room -= sizes[first] + 1
    return [0, *range(first, len(sizes))]


def _extended(blocks: Iterable[_Open], section: Section, text: bytes) -> Unfinished:
    """The blocks with their lines of this text. One walk places the lines of all blocks."""
    kept = [(block, *_kept_of(block, text)) for block in blocks]
    positions = sorted(position for _, _, new in kept for position in new)
    placed = dict(zip(positions, places(section, text, positions), strict=True))
    return tuple(
        UnfinishedBlock(
            block.speaker,
            (
                *before,
                *(BlockLine(_line(text, at), placed[at].offset, placed[at].number) for at in new),
            ),
            block.foreign,
        )
        for block, before, new in kept
    )


def _kept_of(block: _Open, text: bytes) -> tuple[list[BlockLine], list[int]]:
    """The lines of earlier chunks that a block keeps, and where its kept lines of this text begin."""
    positions, known = block.positions(text), len(block.before)
    sizes = [len(line.text) for line in block.before] + [len(_line(text, at)) for at in positions]
    indexes = _window(sizes)
    before = [block.before[index] for index in indexes if index < known]
    return before, [positions[index - known] for index in indexes if index >= known]
