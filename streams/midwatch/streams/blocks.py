"""Blocks of lines that belong together: a Python traceback, per speaker, until its exception line. Pure.

Rules match single lines. What a block is for: where a chunk ends within a traceback, the next chunk repeats
the lines that were already there, so that the exception line arrives with the frames that led to it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from midwatch.streams.lines import places
from midwatch.streams.records import Anchor, Section

LONGEST_BLOCK = 64
"""Lines kept of an unfinished block: its first and its latest ones."""

LARGEST_CONTEXT = 64 * 1024
"""Bytes of all unfinished blocks together; the oldest goes first."""

_OPENS = b"Traceback (most recent call last):"
# Who speaks, where many ranks share one stream: `[rank3]: `, `3: `, `(Trainer pid=77, ip=10.0.0.1) `.
_SPEAKER = re.compile(
    rb"(?:\[(?:rank|default)\d+\]:? ?|\[\d+,\d+\]<std(?:out|err)>:|\d{1,6}: "
    rb"|\([^()]{0,80}pid=\d+[^()]{0,80}\) )*"
)
_EXCEPTION = re.compile(rb"[A-Za-z_][\w.]*(?:: .*|:?)\Z", re.DOTALL)
_RANK = re.compile(rb"\[(?:rank|default)(\d+)\]|\[\d+,(\d+)\]<std|(?:\A|\) )(\d{1,6}): ")
_PATIENCE = 16  # lines of the same speaker that belong to no traceback, until we stop waiting for its end


@dataclass(frozen=True, slots=True)
class BlockLine:
    """A line of an unfinished block, and its place in the file."""

    text: bytes
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class UnfinishedBlock:
    """A traceback whose exception line did not come yet."""

    speaker: bytes
    lines: tuple[BlockLine, ...]
    foreign: int = 0


Unfinished = tuple[UnfinishedBlock, ...]


def claimed_rank(line: bytes) -> int | None:
    """The rank that a line says it is of, by the prefix of a launcher; evidence, never identity."""
    match = _RANK.search(line[: _prefix(line)])
    return int(next(g for g in match.groups() if g is not None)) if match else None


def follow(unfinished: Unfinished, section: Section, text: bytes) -> Unfinished:
    """The blocks of one file that are unfinished behind these lines (without context) of it."""
    if not unfinished and _OPENS not in text:
        return ()
    blocks = {block.speaker: block for block in unfinished}
    added: dict[bytes, list[int]] = {block.speaker: [] for block in unfinished}
    position = 0 if unfinished else text.rfind(b"\n", 0, text.index(_OPENS)) + 1
    while position < len(text):
        stop = text.find(b"\n", position)
        line = text[position : stop if stop >= 0 else len(text)]
        prefix = _prefix(line)
        speaker, said = line[:prefix], line[prefix:]
        if said.startswith(_OPENS):
            blocks[speaker], added[speaker] = UnfinishedBlock(speaker, ()), [position]
        elif block := blocks.get(speaker):
            if said[:1].isspace():
                added[speaker].append(position)
            elif _EXCEPTION.match(said) or block.foreign >= _PATIENCE:
                del blocks[speaker]
            else:
                blocks[speaker] = replace(block, foreign=block.foreign + 1)
        position += len(line) + 1
    return tuple(_extended(block, section, text, added[block.speaker]) for block in blocks.values())


def fitting(unfinished: Unfinished) -> Unfinished:
    """Those that may be repeated in one chunk: the youngest, up to `LARGEST_CONTEXT` bytes."""
    kept, size = [], 0
    for block in sorted(unfinished, key=lambda b: -b.lines[0].offset):
        size += sum(len(line.text) + 1 for line in block.lines)
        if size > LARGEST_CONTEXT:
            break
        kept.append(block)
    return tuple(kept)


def context(unfinished: Unfinished) -> tuple[bytes, tuple[Anchor, ...], int]:
    """Text, anchors and count of the lines to repeat, in the order of the file."""
    lines = sorted((line for block in unfinished for line in block.lines), key=lambda line: line.offset)
    anchors = tuple(Anchor(i, line.offset, line.number) for i, line in enumerate(lines))
    return b"".join(line.text + b"\n" for line in lines), anchors, len(lines)


def _prefix(line: bytes) -> int:
    match = _SPEAKER.match(line)
    return match.end() if match else 0


def _extended(block: UnfinishedBlock, section: Section, text: bytes, positions: list[int]) -> UnfinishedBlock:
    if len(positions) > LONGEST_BLOCK:
        positions = [positions[0], *positions[1 - LONGEST_BLOCK :]]
    new = tuple(
        BlockLine(text[at : text.find(b"\n", at)], place.offset, place.number)
        for at, place in zip(positions, places(section, text, positions), strict=True)
    )
    lines = block.lines + new
    if len(lines) > LONGEST_BLOCK:
        lines = (lines[0], *lines[1 - LONGEST_BLOCK :])
    return replace(block, lines=lines)
