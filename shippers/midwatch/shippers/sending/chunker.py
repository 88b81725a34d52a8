"""Turns raw blocks of files into chunks of whole normalised lines. Pure."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from midwatch.shippers.files.tail import FilePosition, ReadBlock
from midwatch.streams.line_feeds import line_feeds
from midwatch.streams.lines import blocks
from midwatch.streams.lines.normalise import normalise
from midwatch.streams.records import Anchor, Chunk, Generation, Origin, Section

_MOST_ANCHORS = 4096  # most anchors of one section: about 230 KiB in the header, beside the text
_ANCHOR_SIZE = 56  # bytes of one anchor in the header

Ends = tuple[tuple[Generation, FilePosition], ...]


@dataclass(frozen=True, slots=True)
class Parcel:
    """A chunk, and the position behind it in each of its files."""

    chunk: Chunk
    ends: Ends
    size: int  # bytes of the message, roughly


@dataclass(frozen=True, slots=True)
class _Piece:
    section: Section
    text: bytes
    end: FilePosition


class Chunker:
    """Cuts chunks at `limit` bytes and passes unfinished blocks from one chunk to the next."""

    def __init__(self, origin: Origin, limit: int) -> None:
        self._origin = origin
        self._limit = limit
        self._unfinished: dict[Generation, blocks.Unfinished] = {}
        self.lines = 0
        """Number of lines in all chunks; a line that is read again counts again."""

    def forget(self) -> None:
        """Drops the unfinished blocks. Call it before lines are read again: the first has a `lead`."""
        self._unfinished.clear()

    def parcels(self, read: Iterable[ReadBlock]) -> Iterator[Parcel]:
        """Yields the blocks' lines in chunks. The last chunk may be small."""
        waiting: list[_Piece] = []
        size = 0
        for piece in (p for block in read for p in self._pieces(block)):
            weight = len(piece.text) + _ANCHOR_SIZE * len(piece.section.anchors)
            if waiting and size + weight > self._limit:
                yield self._parcel(waiting)
                waiting, size = [], 0
            waiting.append(piece)
            size += weight
        if waiting:
            yield self._parcel(waiting)

    def _pieces(self, block: ReadBlock) -> Iterator[_Piece]:
        if block.lead:
            at = FilePosition(
                block.start.offset - len(block.lead), block.start.number - block.lead.count(b"\n")
            )
            before = replace(block, raw=block.lead, start=at, end=block.start)
            open_before: blocks.Unfinished = ()
            for piece in _pieces(before):
                open_before = blocks.follow(open_before, piece.section, piece.text)
            if open_before:
                self._unfinished[block.generation] = open_before
        return _pieces(block)

    def _parcel(self, pieces: list[_Piece]) -> Parcel:
        sections: list[Section] = []
        texts: list[bytes] = []
        pieces = _joined(pieces)
        self.lines += sum(piece.section.lines for piece in pieces)
        generations = [piece.section.generation for piece in pieces]
        room = blocks.fitting(tuple(b for g in generations for b in self._unfinished.get(g, ())))
        for piece, generation in zip(pieces, generations, strict=True):
            open_before = tuple(b for b in self._unfinished.pop(generation, ()) if b in room)
            open_after = blocks.follow(open_before, piece.section, piece.text)
            section, text = blocks.with_context(piece.section, piece.text, open_before)
            if open_after:
                self._unfinished[generation] = open_after
            sections.append(section)
            texts.append(text)
        chunk = Chunk(self._origin, tuple(sections), b"".join(texts))
        anchors = sum(len(s.anchors) for s in sections)
        size = len(chunk.text) + _ANCHOR_SIZE * anchors + 300 * len(sections)
        ends = {p.section.generation: p.end for p in pieces}
        return Parcel(chunk, tuple(ends.items()), size)


def _joined(pieces: list[_Piece]) -> list[_Piece]:
    """Joins the pieces of each file to one section, so that no traceback is cut within a chunk."""
    of: dict[Generation, list[_Piece]] = {}
    for piece in pieces:
        of.setdefault(piece.section.generation, []).append(piece)
    return [parts[0] if len(parts) == 1 else _one_piece(parts) for parts in of.values()]


def _one_piece(parts: list[_Piece]) -> _Piece:
    first, last = parts[0].section, parts[-1].section
    anchors: list[Anchor] = []
    lines = 0
    for part in parts:
        anchors += (Anchor(a.index + lines, a.offset, a.number) for a in part.section.anchors)
        lines += part.section.lines
    text = b"".join(part.text for part in parts)
    section = replace(
        first, size=len(text), lines=lines, anchors=tuple(anchors), end=last.end, read_at=last.read_at
    )
    return _Piece(section, text, parts[-1].end)


def _pieces(block: ReadBlock) -> Iterator[_Piece]:
    """A block as one section, or as several where CRs or escapes on every line make its table too large."""
    lines = normalise(block.raw, block.start.offset, block.start.number)
    anchors = lines.anchors
    first, text_at = 0, 0
    while first + _MOST_ANCHORS < len(anchors):
        behind = anchors[first + _MOST_ANCHORS]
        stop = text_at
        for _ in range(behind.index - anchors[first].index):
            stop = lines.text.index(b"\n", stop) + 1
        end = FilePosition(behind.offset, behind.number, within=True)
        yield _piece(block, anchors[first : first + _MOST_ANCHORS], lines.text[text_at:stop], end)
        first, text_at = first + _MOST_ANCHORS, stop
    yield _piece(block, anchors[first:], lines.text[text_at:] if text_at else lines.text, block.end)


def _path_text(path: str) -> str:
    """A file's path for a record: bytes that are no UTF-8 become U+FFFD."""
    return os.fsencode(path).decode("utf-8", "replace")


def _piece(block: ReadBlock, anchors: tuple[Anchor, ...], text: bytes, end: FilePosition) -> _Piece:
    base = anchors[0].index if anchors else 0
    if base:
        anchors = tuple(Anchor(a.index - base, a.offset, a.number) for a in anchors)
    section = Section(
        path=_path_text(block.path),
        generation=block.generation,
        size=len(text),
        lines=line_feeds(text),
        anchors=anchors,
        end=end.offset,
        read_before=block.read_before,
        read_at=block.read_at,
    )
    return _Piece(section, text, end)
