"""Raw blocks of files into chunks of whole normalised lines. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from midwatch.shippers.tail import Block, Position
from midwatch.streams import blocks
from midwatch.streams.lines import normalise
from midwatch.streams.records import Anchor, Chunk, Generation, Origin, Section

_MOST_ANCHORS = 4096  # of one section: about 230 KiB in the header, beside the text
_ANCHOR_SIZE = 56  # bytes of one in the header

Ends = tuple[tuple[Generation, Position], ...]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A chunk, and how far it takes each of its files."""

    chunk: Chunk
    ends: Ends
    size: int  # bytes of the message, about


@dataclass(frozen=True, slots=True)
class _Piece:
    section: Section
    text: bytes
    end: Position


class Chunker:
    """Cuts chunks at `limit` bytes and remembers unfinished blocks from one to the next."""

    def __init__(self, origin: Origin, limit: int) -> None:
        self._origin = origin
        self._limit = limit
        self._unfinished: dict[Generation, blocks.Unfinished] = {}

    def forget(self) -> None:
        """Lines will be read again: no block is open."""
        self._unfinished.clear()

    def parcels(self, read: Iterable[Block]) -> Iterator[Parcel]:
        """The blocks' lines in chunks; the last one may be small."""
        waiting: list[_Piece] = []
        size = 0
        for piece in (p for block in read for p in _pieces(block)):
            weight = len(piece.text) + _ANCHOR_SIZE * len(piece.section.anchors)
            if waiting and size + weight > self._limit:
                yield self._parcel(waiting)
                waiting, size = [], 0
            waiting.append(piece)
            size += weight
        if waiting:
            yield self._parcel(waiting)

    def _parcel(self, pieces: list[_Piece]) -> Parcel:
        sections: list[Section] = []
        texts: list[bytes] = []
        room = blocks.fitting(tuple(b for p in _firsts(pieces) for b in self._unfinished.get(p, ())))
        for generation in _firsts(pieces):
            kept = tuple(b for b in self._unfinished.get(generation, ()) if b in room)
            self._unfinished[generation] = kept
        repeated: set[Generation] = set()
        for piece in pieces:
            section, text, generation = piece.section, piece.text, piece.section.generation
            open_before = self._unfinished.get(generation, ())
            open_after = blocks.follow(open_before, section, text)
            if open_before and generation not in repeated:
                section, text = _with_context(section, text, open_before)
            repeated.add(generation)
            if open_after:
                self._unfinished[generation] = open_after
            else:
                self._unfinished.pop(generation, None)
            sections.append(section)
            texts.append(text)
        chunk = Chunk(self._origin, tuple(sections), b"".join(texts))
        anchors = sum(len(s.anchors) for s in sections)
        size = len(chunk.text) + _ANCHOR_SIZE * anchors + 300 * len(sections)
        ends = {p.section.generation: p.end for p in pieces}
        return Parcel(chunk, tuple(ends.items()), size)


def _firsts(pieces: list[_Piece]) -> dict[Generation, None]:
    return {piece.section.generation: None for piece in pieces}


def _with_context(section: Section, text: bytes, unfinished: blocks.Unfinished) -> tuple[Section, bytes]:
    before, anchors, count = blocks.context(unfinished)
    shifted = tuple(Anchor(a.index + count, a.offset, a.number) for a in section.anchors)
    return (
        replace(
            section,
            size=section.size + len(before),
            lines=section.lines + count,
            anchors=anchors + shifted,
            context=count,
        ),
        before + text,
    )


def _pieces(block: Block) -> Iterator[_Piece]:
    """A block as a section; as several, where CRs or escapes on every line make its table too large."""
    lines = normalise(block.raw, block.start.offset, block.start.number)
    anchors = lines.anchors
    first, text_at = 0, 0
    while first + _MOST_ANCHORS < len(anchors):
        behind = anchors[first + _MOST_ANCHORS]
        stop = text_at
        for _ in range(behind.index - anchors[first].index):
            stop = lines.text.index(b"\n", stop) + 1
        end = Position(behind.offset, behind.number, within=True)
        yield _piece(block, anchors[first : first + _MOST_ANCHORS], lines.text[text_at:stop], end)
        first, text_at = first + _MOST_ANCHORS, stop
    yield _piece(block, anchors[first:], lines.text[text_at:] if text_at else lines.text, block.end)


def _shown(path: str) -> str:
    """A file's name as a record can hold it: bytes that are no text become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def _piece(block: Block, anchors: tuple[Anchor, ...], text: bytes, end: Position) -> _Piece:
    base = anchors[0].index if anchors else 0
    if base:
        anchors = tuple(Anchor(a.index - base, a.offset, a.number) for a in anchors)
    section = Section(
        path=_shown(block.path),
        generation=block.generation,
        size=len(text),
        lines=text.count(b"\n"),
        anchors=anchors,
        end=end.offset,
        read_before=block.read_before,
        read_at=block.read_at,
    )
    return _Piece(section, text, end)
