"""The hits of log files in the order of their lines, a chunk at a time, so a large file needs little memory.

Several processes match the chunks of a large job at once.
"""

from __future__ import annotations

import math
import os
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from dataclasses import dataclass

from midwatch.agents.match.chunk_hits import match
from midwatch.agents.replay.own_counts import with_own_counts
from midwatch.agents.replay.reading.archives import Advance, LogReader
from midwatch.agents.replay.reading.line_order import cut, joined, timed
from midwatch.agents.replay.reading.log_files import LogFile, chunks_of, origin_of
from midwatch.agents.replay.reading.printed_times import PrintedTimes, undated
from midwatch.agents.replay.undated_ends import ended_late, last_clock
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.streams.errors import MidwatchError
from midwatch.streams.records import Chunk, Hits

MOST_PROCESSES = 4
Chunks = Iterator[tuple[Chunk | None, bool]]
"""Chunks of a file, each with whether the file ends there."""
_ALONE = 2


@dataclass(frozen=True, slots=True)
class _Matched:
    """The hits of one chunk. `latest`: the time of its last dated line; `UNKNOWN` if it has none."""

    hits: Hits | None
    latest: float


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is not whole. `what`: a sentence without its subject's name."""

    path: str
    what: str


class Matching:
    """Matches chunks, by this process or by others."""

    def __init__(self, watched: CompiledBundle, executor: Executor | None = None, processes: int = 1) -> None:
        self._watched = watched
        self._executor = executor
        self._submitted = 0
        self.ahead = 2 * processes if executor else 0
        """Chunks that may wait for their hits."""

    def submit(self, chunk: Chunk) -> Future[_Matched]:
        """The hits of a chunk, now or later.

        This process matches the first chunks itself. RE2 then knows the usual lines before the others begin,
        and a fork inherits that.
        """
        self._submitted += 1
        if self._executor is not None and self._submitted > _ALONE:
            return self._executor.submit(_match_in_process, chunk)
        done: Future[_Matched] = Future()
        done.set_result(_match(chunk, self._watched))
        return done


@contextmanager
def matching(watched: CompiledBundle, processes: int) -> Iterator[Matching]:
    """The means to match chunks with so many processes."""
    if processes < 2:
        yield Matching(watched)
        return
    import gc
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor
    from concurrent.futures.process import BrokenProcessPool

    gc.freeze()  # the rules stay, so no collection need look at them
    fork = multiprocessing.get_context("fork")  # its arguments are inherited, and no rule is compiled twice
    try:
        with ProcessPoolExecutor(processes, fork, _bundles.append, (watched,)) as executor:
            yield Matching(watched, executor, processes)
    except BrokenProcessPool as error:
        raise MidwatchError(
            "a process that matched lines was killed", remedy="the machine may lack memory"
        ) from error


_bundles: list[CompiledBundle] = []
"""In a process that matches for another: the one bundle by which it matches."""


def _match_in_process(chunk: Chunk) -> _Matched:
    return _match(chunk, _bundles[0])


def _match(chunk: Chunk, watched: CompiledBundle) -> _Matched:
    times = PrintedTimes()
    hits = match(chunk, watched.rules, watched.hash, 0, when=times, any_line=watched.any_line)
    hits = with_own_counts(chunk, hits, watched.hash, times)
    return _Matched(hits, times.latest)


def processes_for(size: int, worth: int) -> int:
    """How many processes shall match: one for each core, up to four, if there are `worth` bytes or more."""
    return min(len(os.sched_getaffinity(0)), MOST_PROCESSES) if size >= worth else 1


class FileHits:
    """The hits of one file that were read and not yet taken. `latest`: the time of the last line read."""

    def __init__(
        self, file: LogFile, reader: LogReader, chunks: Chunks, undated: float, clock: float | None
    ) -> None:
        self.path = file.path
        self._file, self._clock = file, clock
        self.ended = False
        self.latest = 0.0
        self.damage = ""
        self._undated = undated
        self._record: Hits | None = None
        self._reader = reader
        self._chunks = chunks
        self._waiting: deque[tuple[Future[_Matched] | None, bool]] = deque()

    def load(self, matching: Matching, ahead: int) -> None:
        """Take the next chunk, and let `ahead` chunks behind it be matched meanwhile. Raises OSError."""
        while len(self._waiting) <= ahead and (following := next(self._chunks, None)) is not None:
            chunk, last = following
            self._waiting.append((None if chunk is None else matching.submit(chunk), last))
            if last:
                self.damage = self._reader.damage
                self._reader.close()
        future, self.ended = self._waiting.popleft() if self._waiting else (None, True)
        matched = future.result() if future is not None else None
        if matched is None:
            return
        if matched.hits is not None:
            undated = max(self._undated, self.latest)
            record, self.latest = timed(matched.hits, self.latest, undated)
            clock = self._clock if self.ended else None
            self._record = record if clock is None else ended_late(self._file, record, clock)
        if not math.isnan(matched.latest):
            self._undated = matched.latest

    def take(self, until: float | None = None, *, inclusive: bool = True) -> Hits | None:
        """The hits up to a time, or all. They are no longer here afterwards.

        `inclusive`: hits at that time belong to them.
        """
        record = self._record
        if record is None or until is None:
            self._record = None
            return record
        now, self._record = cut(record, until, inclusive=inclusive)
        return now


def in_order(
    job: str, files: Sequence[LogFile], watched: CompiledBundle, matching: Matching, advance: Advance
) -> Iterator[Hits | Damage]:
    """Records of all files' hits, such that no line of a record belongs in front of an earlier record.

    Small files make one record. Of large ones it reads on where the read lines end earliest. Raises OSError.
    """
    sources: list[FileHits] = []
    clock = last_clock(files)
    for index, (file, otherwise) in enumerate(zip(files, undated(files), strict=True)):
        reader = file.open(advance)
        sources.append(FileHits(file, reader, chunks_of(job, file, index, reader), otherwise, clock))
    ahead = matching.ahead // len(sources) if sources else 0
    for source in sources:
        source.load(matching, ahead)
    while unread := [(source.latest, index) for index, source in enumerate(sources) if not source.ended]:
        until, least = min(unread)
        taken = [
            source.take() if index == least else source.take(until, inclusive=index < least)
            for index, source in enumerate(sources)
        ]
        parts = [part for part in taken if part is not None]
        if parts:
            yield joined(origin_of(job), watched.hash, parts)
        sources[least].load(matching, matching.ahead if len(unread) == 1 else ahead)
    parts = [part for source in sources if (part := source.take()) is not None]
    if parts:
        yield joined(origin_of(job), watched.hash, parts)
    yield from (Damage(source.path, source.damage) for source in sources if source.damage)
