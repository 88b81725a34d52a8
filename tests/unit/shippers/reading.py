"""Reads a watch as the sidecar does, without Kafka, and keeps what a consumer would have seen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from midwatch.shippers.files.followed import FollowedFiles, Start
from midwatch.shippers.files.sent_positions import Remembered
from midwatch.shippers.files.tail import Now, ReadBlock
from midwatch.shippers.sending.chunker import Chunker, Parcel
from midwatch.streams.lines.normalise import places
from midwatch.streams.records import Origin

ORIGIN = Origin("local:ann/run", "node1", 1, "local:7:1", "boot", "start")

Seen = tuple[str, int, int, str]  # generation, offset, number, text


def lines_of(parcel: Parcel) -> Iterator[Seen]:
    position = 0
    for section in parcel.chunk.sections:
        text = parcel.chunk.text[position : position + section.size]
        position += section.size
        starts = [0, *(i + 1 for i, byte in enumerate(text[:-1]) if byte == 0x0A)]
        for place, line in zip(places(section, text, starts), text.split(b"\n"), strict=False):
            if place.index >= section.context:
                yield section.generation.key(), place.offset, place.number, line.decode()


class Reader:
    """One start of a shipper over some paths."""

    def __init__(
        self, *paths: Path | str, start: Start = "checkpoint", remembered: Sequence[Remembered] = ()
    ) -> None:
        self.said: list[str] = []
        self.watch = FollowedFiles(
            [str(p) for p in paths], start=start, remembered=remembered, report=self.said.append
        )
        self.chunker = Chunker(ORIGIN, 256 * 1024)
        self.seen: list[Seen] = []
        self.now = Now(1000.0, 0.0)

    def later(self, seconds: float = 0.2) -> Reader:
        self.now = Now(self.now.wall + seconds, self.now.monotonic + seconds)
        return self

    def look(self, *, acknowledge: bool = True, flush: bool = False) -> list[str]:
        """One poll, and all that can be read then; the texts of the new lines."""
        self.later()
        self.watch.poll(self.now, rescan=True)
        blocks: list[ReadBlock] = []
        for tail in self.watch.tails:
            while block := tail.read(64 * 1024, self.now, flush=flush):
                blocks.append(block)
        new: list[Seen] = []
        for parcel in self.chunker.parcels(blocks):
            new += lines_of(parcel)
            if acknowledge:
                for generation, position in parcel.ends:
                    self.watch.acknowledge(generation, position)
        self.seen += new
        return [text for *_, text in new]

    def stop(self) -> tuple[Remembered, ...]:
        """As a kill would: only what is acknowledged is remembered."""
        remembered = self.watch.remembered()
        self.watch.close()
        return remembered
