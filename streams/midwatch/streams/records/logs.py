"""What shippers send: chunks of lines and beats, and where each line stands in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.streams.records.bounds import Clock, Count, Duration, JobText, Millis, Name, NodeName, Nodes


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks: one shipper of one job on one node. From configuration and environment, never from text."""

    job: JobText  # cluster:user/run
    node: NodeName
    nodes: Nodes  # how many nodes this attempt runs on
    incarnation: Name  # see midwatch.streams.records.identity
    boot_id: Name
    shipper: Name  # one start of the shipper; sequence numbers of beats count within it


@dataclass(frozen=True, slots=True)
class Generation:
    """Which file a path names at present: a rotated, truncated or replaced file is another generation."""

    device: int
    inode: int
    fingerprint: str  # of the first bytes, so that a reused inode is seen
    truncations: Count = 0

    def key(self) -> str:
        return f"{self.device}:{self.inode}:{self.fingerprint}:{self.truncations}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """From line `index` of a section on, lines stand at `offset` and `number` of the original file."""

    index: Count
    offset: Count
    number: Count


@dataclass(frozen=True, slots=True)
class Section:
    """Whole lines of one file within a chunk's text.

    `anchors` holds the first line and every line where normalising changed length or count; between two
    anchors each line is as long as it was (plus its newline). The first `context` lines are repeated from
    an earlier chunk to complete a block: a hit that ends within them is not this chunk's.
    """

    path: str
    generation: Generation
    size: Count  # bytes of the chunk's text that belong to this section
    lines: Count
    anchors: tuple[Anchor, ...]
    end: Count  # offset in the original file behind the last line
    read_before: Clock  # wall clock of the previous read of this file
    read_at: Clock
    rank: Count | None = None  # only if the configuration knows it
    context: Count = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole normalised lines of one node; `text` is the sections' lines, one behind the other."""

    origin: Origin
    sections: tuple[Section, ...]
    text: bytes


LINES_READ = "lines_read"
"""The sample of a beat that counts lines read since the shipper's start; those read again count again."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """A shipper's sign of life. It travels behind the lines that it vouches for.

    `at_end`: every file was read to the size that it had when the poll began. `alive`: the process tree of
    the job on this node, None if it cannot be known. `final`: the job has ended and its files are drained.
    """

    origin: Origin
    sequence: Count
    wall: Clock
    monotonic: float
    interval: Duration  # seconds that this shipper means to let pass between two beats
    at_end: bool
    backlog: Count  # bytes read or waiting but not yet acknowledged by the broker
    alive: bool | None = None
    final: bool = False
    logged_ms: Millis = 0  # append time on the topic `logs`; match writes it in, so that its own lag shows
    files: Count = 0
    samples: Mapping[str, float] = field(default_factory=dict)
