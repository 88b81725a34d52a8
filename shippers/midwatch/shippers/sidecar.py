"""The sidecar's loop until the job's end: read the files, send lines and heartbeats, save what arrived."""

from __future__ import annotations

import queue
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from kafka.errors import KafkaError, KafkaTimeoutError

from midwatch.shippers.files.sent_positions import Remembered, SentPositions, ShipperDirectory
from midwatch.shippers.files.tail import FilePosition, Now, ReadBlock, Tail
from midwatch.shippers.host import samples
from midwatch.shippers.messages import Report
from midwatch.shippers.processes import JobProcess
from midwatch.shippers.sending.chunker import Chunker
from midwatch.shippers.sending.heartbeat import HeartbeatCounter, HeartbeatFacts, interval
from midwatch.shippers.sending.ledger import Future, SendLedger
from midwatch.shippers.sending.publish import Publisher
from midwatch.streams.failpoints import failpoint
from midwatch.streams.records import LINES_READ, CheckpointChoice, Generation, Origin
from midwatch.streams.records.codec import encode_log
from midwatch.streams.records.identity import message_key
from midwatch.streams.settings.schema import ShipSettings

DRAIN = 25.0
"""Seconds after the job's end within which everything must arrive at the broker."""

_STEP_BYTES = 4 * 1024 * 1024  # bytes read between two looks at clocks, signals and acknowledgements
_TURN_BYTES = 1024 * 1024  # bytes of one file before the next file's turn
_SAVE_EVERY = 0.5
_HEARTBEATS_IN_FLIGHT = 64
_LATE = 10.0  # seconds without an acknowledgement after which the sidecar reports it
_SILENT = 60.0
"""Seconds without an acknowledgement after which the sidecar replaces the producer.

Once, after an outage of a minute, the producer of kafka-python 3.0.12 hung. It sent nothing, failed nothing
and ended no `flush`. A line that arrives twice has no effect.
"""


class LineSource(Protocol):
    """A source of lines: `FollowedFiles` for files, `SpoolWatch` for a pipe."""

    tails: list[Tail]
    truncated: int
    dropped: int
    blind: bool
    ended: bool

    def poll(self, now: Now, *, rescan: bool = False) -> None: ...
    def acknowledge(self, generation: Generation, position: FilePosition) -> None: ...
    def remembered(self) -> tuple[Remembered, ...]: ...
    def rewind(self) -> None: ...
    def close(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Ends:
    """What ends the sidecar besides a signal. Each heartbeat says whether `process` is alive."""

    process: JobProcess | None = None
    with_process: bool = False
    drain: float = DRAIN


class Sidecar:
    """One shipper of one job on one node."""

    def __init__(
        self,
        origin: Origin,
        source: LineSource,
        *,
        publisher: Publisher,
        state: ShipperDirectory,
        settings: ShipSettings,
        ends: Ends,
        report: Report,
        checkpoint: CheckpointChoice | None = None,
    ) -> None:
        self._origin = origin
        self._source = source
        self._publisher = publisher
        self._state = state
        self._settings = settings
        self._ends = ends
        self._report = report
        self._key = message_key(origin.job, origin.node)
        self._chunker = Chunker(origin, settings.chunk_size)
        self._ledger = SendLedger()
        self._heartbeat_counter = HeartbeatCounter(
            origin, interval(settings.interval, origin.nodes), checkpoint
        )
        self._heartbeats: list[tuple[Future, float]] = []  # each with the time when it was sent
        self._pause = max(settings.poll, settings.chunk_age, min(1.0, origin.nodes / 1000))
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._stops: list[float] = []
        self._save_at = float("-inf")
        self._unsaved = False
        self._saved_files: frozenset[tuple[int, int]] = frozenset()
        self._late = False
        self._full_disk = False
        self._final = False
        self._arrived_at = float("-inf")
        self.facts: HeartbeatFacts | None = None
        """What the last heartbeat said; None before the first one."""

    def stop(self, *_: object) -> None:
        """Ends `run`, from a signal handler or any thread: it drains and returns. Twice: at once."""
        self._stops.append(time.monotonic())
        self._wake.put(None)

    def run(self, *, ignore_signals: bool = False) -> int:
        """Ships until the job ends. Returns 0 if everything arrived, 1 if lines still wait in their files.

        Handles SIGTERM and SIGINT: they call `stop`, or with `ignore_signals` they do nothing.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN if ignore_signals else self.stop)
        self._publisher.connect()
        try:
            while True:
                now = _now()
                if self._over(now):
                    return self._finish(now)
                if not self._step(now):
                    self._sleep(self._rest(now))
        finally:
            self._publisher.close()
            self._source.close()
            self._state.close()

    def _over(self, now: Now) -> bool:
        process = self._ends.process
        running = process is not None and process.running()
        if self._stops and running:
            # The whole job may have got the signal: wait for its last lines.
            return now.monotonic - self._stops[0] > self._ends.drain or len(self._stops) > 1
        return bool(self._stops) or self._source.ended or (self._ends.with_process and not running)

    def _finish(self, now: Now) -> int:
        deadline = now.monotonic + self._ends.drain
        ended = self._ends.process is None or not self._ends.process.running()
        while now.monotonic < deadline and len(self._stops) < 2:
            more = self._step(now, flush=True)
            if not more and self._drained():
                if ended and not self._final and self._publisher.ready:
                    self._final = True
                    self._send_heartbeat(_now())
                elif (self._final or not ended) and not self._unacknowledged_heartbeats():
                    self._save("" if ended else self._origin.incarnation)
                    return 0
            if not more:
                self._sleep(0.02)
            now = _now()
        self._save(self._origin.incarnation)
        waiting = self._ledger.in_flight + sum(t.waiting for t in self._source.tails)
        self._report(f"ended with {waiting} bytes unsent; the checkpoint records where they begin")
        return 1

    def _drained(self) -> bool:
        """Whether all lines were read and have arrived."""
        return not self._source.blind and not len(self._ledger) and all(t.at_end for t in self._source.tails)

    def _rest(self, now: Now) -> float:
        """Seconds to sleep: few while the buffer is full and the broker takes lines, else the usual pause."""
        busy = self._room() <= 0 and now.monotonic - self._arrived_at < 1.0
        return min(0.01, self._pause) if busy else self._pause

    def _step(self, now: Now, *, flush: bool = False) -> bool:
        """One round of the loop; returns whether there is more to read at once."""
        self._collect(now)
        self._source.poll(now, rescan=flush)
        self._remember_new_files()
        more = False
        if self._publisher.ready:
            try:
                more = self._ship(now, flush=flush)
                waiting = self._unacknowledged_heartbeats()
                if not self._final and self._heartbeat_counter.due(now) and waiting < _HEARTBEATS_IN_FLIGHT:
                    self._send_heartbeat(now)
            except KafkaError as error:
                self._start_over(error)
        if self._unsaved and now.monotonic >= self._save_at:
            self._save(self._origin.incarnation)
        return more

    def _remember_new_files(self) -> None:
        """Saves new files before their first line is sent: after a kill the file's name may be gone."""
        files = frozenset((t.generation.device, t.generation.inode) for t in self._source.tails)
        if not files <= self._saved_files:
            self._saved_files = files
            self._save(self._origin.incarnation)

    def _ship(self, now: Now, *, flush: bool) -> bool:
        before = self._ledger.in_flight
        for parcel in self._chunker.parcels(self._blocks(now, flush=flush)):
            failpoint("read")
            future = self._publisher.send(self._key, encode_log(parcel.chunk))
            self._ledger.add(future, parcel.size, parcel.ends, now.monotonic)
            failpoint("send")
        return self._ledger.in_flight > before and any(not t.at_end for t in self._source.tails)

    def _blocks(self, now: Now, *, flush: bool) -> Iterator[ReadBlock]:
        step = 0
        for tail in self._source.tails:
            turn = 0
            # A read block is in the ledger only once its chunk is full, so `step` counts it too.
            while turn < _TURN_BYTES and step < _STEP_BYTES and self._room() > 0:
                try:
                    block = tail.read(self._settings.chunk_size, now, flush=flush)
                except OSError as error:
                    self._report(f"{tail.path} cannot be read: {error.strerror}")
                    self._source.blind = True
                    break
                if block is None:
                    break
                turn += len(block.raw)
                step += len(block.raw)
                yield block

    def _room(self) -> int:
        return self._settings.in_flight - self._ledger.in_flight

    def _send_heartbeat(self, now: Now) -> None:
        tails = self._source.tails
        process = self._ends.process
        facts = HeartbeatFacts(
            at_end=all(t.at_end for t in tails) and not self._source.blind,
            backlog=self._ledger.in_flight + sum(t.waiting for t in tails),
            files=len(tails),
            alive=process.alive() if process else None,
            samples=samples()
            | {
                "truncations": self._source.truncated,
                "dropped_bytes": self._source.dropped,
                LINES_READ: self._chunker.lines,
            },
        )
        self.facts = facts
        message = encode_log(self._heartbeat_counter.heartbeat(now, facts, final=self._final))
        self._heartbeats.append((self._publisher.send(self._key, message), now.monotonic))

    def _unacknowledged_heartbeats(self) -> int:
        failed = next((heartbeat.exception for heartbeat, _ in self._heartbeats if heartbeat.exception), None)
        self._heartbeats = [(heartbeat, at) for heartbeat, at in self._heartbeats if not heartbeat.is_done]
        if failed:
            raise failed
        return len(self._heartbeats)

    def _collect(self, now: Now) -> None:
        try:
            arrived = self._ledger.arrived()
        except Exception as error:  # whatever made the producer give it up
            self._start_over(error)
            return
        for generation, position in arrived.items():
            self._source.acknowledge(generation, position)
        if arrived:
            failpoint("acknowledged")
            self._unsaved, self._arrived_at = True, now.monotonic
        oldest = self._ledger.oldest()
        if not self._late and oldest is not None and now.monotonic - oldest > _LATE:
            self._late = True
            self._report("Kafka does not acknowledge; lines wait in their files")
        elif self._late and arrived and (oldest is None or now.monotonic - oldest <= _LATE):
            self._late = False
            self._report("Kafka is back")
        if (silent := self._silent_for(now)) > _SILENT:
            self._start_over(KafkaTimeoutError(f"for {silent:.0f} s nothing was acknowledged"))

    def _silent_for(self, now: Now) -> float:
        """Seconds for which a message has waited while none was acknowledged."""
        waiting = [at for heartbeat, at in self._heartbeats if not heartbeat.is_done]
        if (oldest := self._ledger.oldest()) is not None:
            waiting.append(oldest)
        return now.monotonic - max(min(waiting, default=now.monotonic), self._arrived_at)

    def _start_over(self, error: BaseException) -> None:
        """Replaces a producer that gave a message up, and reads all that did not arrive again."""
        self._report(f"sending failed: {error!r}; sending again")
        self._final = False
        self._publisher.reset()
        self._ledger.clear()
        self._heartbeats.clear()
        self._chunker.forget()
        self._source.rewind()

    def _save(self, incarnation: str) -> None:
        self._save_at = time.monotonic() + _SAVE_EVERY
        self._unsaved = False
        try:
            self._state.save(SentPositions(self._source.remembered(), incarnation, self._origin.boot_id))
        except OSError as error:
            self._unsaved = True
            if not self._full_disk:
                self._report(
                    f"the checkpoint cannot be written: {error.strerror}; sending goes on without it"
                )
            self._full_disk = True
        else:
            self._full_disk = False

    def _sleep(self, seconds: float) -> None:
        try:
            self._wake.get(timeout=seconds)
        except queue.Empty:
            return


def _now() -> Now:
    return Now(time.time(), time.monotonic())
