"""What shippers send: chunks of lines with their places in the files, and heartbeats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.streams.records.bounds import Clock, Count, Duration, JobText, Millis, Name, NodeName, Nodes
from midwatch.streams.records.words import Unit


@dataclass(frozen=True, slots=True)
class Origin:
    """The sender: one shipper of one job on one node. Set by configuration and environment, never by text."""

    job: JobText  # cluster:user/run
    node: NodeName
    nodes: Nodes  # how many nodes this attempt runs on
    incarnation: Name  # see midwatch.streams.records.identity
    boot_id: Name
    shipper: Name  # one start of the shipper; sequence numbers of heartbeats count within it


@dataclass(frozen=True, slots=True)
class Generation:
    """The file that a path names now. A rotated, truncated or replaced file is another generation."""

    device: int
    inode: int
    fingerprint: str  # of the first bytes; it reveals a reused inode
    truncations: Count = 0

    def key(self) -> str:
        return f"{self.device}:{self.inode}:{self.fingerprint}:{self.truncations}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """From line `index` of a section on, lines begin at `offset` and `number` of the original file."""

    index: Count
    offset: Count
    number: Count


@dataclass(frozen=True, slots=True)
class Section:
    """Whole lines of one file within a chunk's text.

    `anchors` holds the first line and every line where normalising changed length or count. Between two
    anchors each line has its original length. The first `context` lines repeat an earlier chunk's lines to
    complete a block. A hit that ends within them does not belong to this chunk.
    """

    path: str
    generation: Generation
    size: Count  # bytes of the chunk's text that belong to this section
    lines: Count
    anchors: tuple[Anchor, ...]
    end: Count  # offset in the original file after the last line
    read_before: Clock  # wall clock of the previous read of this file
    read_at: Clock
    rank: Count | None = None  # only if the configuration knows it
    context: Count = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole normalised lines of one node. `text` is the sections' lines, one after the other."""

    origin: Origin
    sections: tuple[Section, ...]
    text: bytes


@dataclass(frozen=True, slots=True)
class CheckpointChoice:
    """The checkpoint that a start was told to load. `written_ms`: by its file system's clock."""

    number: Count  # in `unit`
    path: str
    unit: Unit = "step"
    written_ms: Millis = 0


LINES_READ = "lines_read"
"""The heartbeat sample that counts lines read since the shipper's start. A line read again counts again."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A shipper's sign of life, sent after the lines that it vouches for.

    `at_end`: the shipper read every file to the size that it had when the poll began. `alive`: whether the
    job's process tree on this node lives, None if unknown. `final`: the job has ended and the shipper has
    drained its files. `checkpoint`: what the start was told to load, if it chose that itself.
    """

    origin: Origin
    sequence: Count
    wall: Clock
    monotonic: float
    interval: Duration  # seconds that this shipper plans between two heartbeats
    at_end: bool
    backlog: Count  # bytes read or waiting but not yet acknowledged by the broker
    alive: bool | None = None
    final: bool = False
    logged_ms: Millis = 0  # append time on the topic `logs`; match sets it to show its own lag
    files: Count = 0
    samples: Mapping[str, float] = field(default_factory=dict)
    checkpoint: CheckpointChoice | None = None
