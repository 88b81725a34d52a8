"""What shippers send: chunks of lines and beats, and where each line stands in its file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Origin:
    """Who speaks: one shipper of one job on one node. From configuration and environment, never from text."""

    job: str  # cluster:user/run
    node: str
    nodes: int  # how many nodes this attempt runs on
    incarnation: str  # see midwatch.streams.identity
    boot_id: str
    shipper: str  # one start of the shipper; sequence numbers of beats count within it


@dataclass(frozen=True, slots=True)
class Generation:
    """Which file a path names at present: a rotated, truncated or replaced file is another generation."""

    device: int
    inode: int
    fingerprint: str  # of the first bytes, so that a reused inode is seen
    truncations: int = 0

    def key(self) -> str:
        return f"{self.device}:{self.inode}:{self.fingerprint}:{self.truncations}"


@dataclass(frozen=True, slots=True)
class Anchor:
    """From line `index` of a section on, lines stand at `offset` and `number` of the original file."""

    index: int
    offset: int
    number: int


@dataclass(frozen=True, slots=True)
class Section:
    """Whole lines of one file within a chunk's text.

    `anchors` holds the first line and every line where normalising changed length or count; between two
    anchors each line is as long as it was (plus its newline). The first `context` lines are repeated from
    an earlier chunk to complete a block: a hit that ends within them is not this chunk's.
    """

    path: str
    generation: Generation
    size: int  # bytes of the chunk's text that belong to this section
    lines: int
    anchors: tuple[Anchor, ...]
    end: int  # offset in the original file behind the last line
    read_before: float  # wall clock of the previous read of this file
    read_at: float
    rank: int | None = None  # only if the configuration knows it
    context: int = 0


@dataclass(frozen=True, slots=True)
class Chunk:
    """Whole normalised lines of one node; `text` is the sections' lines, one behind the other."""

    origin: Origin
    sections: tuple[Section, ...]
    text: bytes


@dataclass(frozen=True, slots=True)
class Beat:
    """A shipper's sign of life. It travels behind the lines that it vouches for.

    `at_end`: every file was read to the size that it had when the poll began. `alive`: the process tree of
    the job on this node, None if it cannot be known. `final`: the job has ended and its files are drained.
    """

    origin: Origin
    sequence: int
    wall: float
    monotonic: float
    interval: float  # seconds that this shipper means to let pass between two beats
    at_end: bool
    backlog: int  # bytes read or waiting but not yet acknowledged by the broker
    alive: bool | None = None
    final: bool = False
    logged_ms: int = 0  # append time on the topic `logs`; match writes it in, so that its own lag shows
    files: int = 0
    samples: Mapping[str, float] = field(default_factory=dict)
