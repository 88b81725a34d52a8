"""`train 2>&1 | midwatch ship -`: passes every byte to standard output at once, and ships a copy.

There are three parts, so that nothing can hold up or end the training. The pump (this thread) only reads,
writes and leaves a copy in memory. A second thread moves copies into a spool. It keeps the third part
running: a process that ships the spool. Any failure there (no Kafka, a full disk, a crash) costs only copies,
the oldest first. They are counted and reported.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.messages import Report
from midwatch.shippers.pipe.process import PIPE_DRAIN, PipeShipment, ShippingProcess
from midwatch.shippers.pipe.spool import FOLDER_PREFIX, Backlog, Spool, end_note, mark_end
from midwatch.shippers.pipe.unsent import (
    MOST_BYTES,
    MOST_SPOOLS,
    SpoolSender,
    drop_oldest,
    left_over,
    living_process,
    make,
    note_sender,
)
from midwatch.streams.host.file_lock import LockTaken

LEFT_OVER_S = 60.0
"""Seconds for which the output of earlier starts goes before the output of this one."""

_LAST_START_S = 1.0
"""Seconds in which the preparation gives up earlier output, so that the present one gets its turn."""

_READ = 64 * 1024


def run_pipe(prepare: Callable[[], PipeShipment], report: Report, source: int = 0, sink: int = 1) -> int:
    """Copies `source` to `sink` until its end, ships the copy, and returns 0.

    `prepare` runs in the second thread, so that a mistake in the settings stops no training. Shipping raises
    nothing here. This ignores SIGINT, SIGTERM and SIGHUP: they are for the training, whose end ends the pipe.
    """
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    copies = Copies(prepare, report)
    copies.start()
    open_sink = True
    while data := os.read(source, _READ):
        open_sink = open_sink and written(sink, data)
        copies.add(data)
    copies.finish()
    return 0


def written(sink: int, data: bytes) -> bool:
    """Writes all of it; returns whether somebody reads it."""
    view = memoryview(data)
    try:
        while view:
            view = view[os.write(sink, view) :]
    except OSError:  # nobody reads our output any more; the training must not notice
        return False
    return True


class Copies:
    """The second thread: moves copies from memory to the spool, and keeps the process that ships it.

    `unsent`: the directory in which the spool stays until all of it has arrived, across later starts. None:
    the spool lies in a temporary directory, and no later start looks for it.
    """

    def __init__(
        self, prepare: Callable[[], PipeShipment], report: Report, unsent: Path | None = None
    ) -> None:
        self._prepare = prepare
        self._report = report
        self._unsent = unsent
        self._end_note = b""
        self._ended_at = float("inf")
        self._hurry = threading.Event()
        self._backlog = Backlog()
        self._lock = threading.Lock()
        self._more = threading.Event()
        self._end = threading.Event()
        self._process: ShippingProcess | None = None
        self._left_over: ShippingProcess | None = None
        self._given_up = False
        self._drain = PIPE_DRAIN
        self._reported_dropped = False
        self._thread = threading.Thread(target=self._run, name="spool", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def add(self, data: bytes) -> None:
        if self._given_up:
            return
        with self._lock:
            self._backlog.add(data)
        self._more.set()

    def finish(self, end_note: bytes = b"") -> None:
        """Ends the spool with this note, and waits until all of it has arrived, for a bounded time."""
        self._end_note, self._ended_at = end_note, time.monotonic()
        self._end.set()
        self._more.set()
        self._thread.join(2 * self._drain + 5)

    def hurry(self) -> None:
        """Ends the wait of `finish`. What has not arrived stays in the spool."""
        self._hurry.set()

    def started(self, pid: int) -> bool:
        """Whether the process is one of those that ship. The caller holds `STARTING`."""
        return any(process.pid == pid for process in (self._process, self._left_over) if process)

    def _run(self) -> None:
        try:
            folder = self._folder()
        except OSError as error:
            self._give_up(f"there is no room for the spool: {error.strerror}")
            return
        # In a thread of its own: the output may come faster than Python imports the modules for shipping.
        preparing = threading.Thread(target=self._begin, args=(folder,), name="prepare", daemon=True)
        preparing.start()
        arrived = False
        try:
            spool = Spool(folder)
            self._move(spool)
            spool.finish(self._end_note)
            while preparing.is_alive() and not self._late():
                preparing.join(0.05)
            preparing.join(_LAST_START_S)
            arrived = self._process is not None and self._process.ended(self._drain + 1, self._hurry.is_set)
        finally:
            if self._process is not None:
                self._process.kill()
        if arrived or self._given_up:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            self._report(f"Kafka did not get all output; the rest is in {folder}")

    def _begin(self, folder: Path) -> None:
        try:
            shipment = self._prepare()
        except Exception as error:  # a mistake in the settings must not end the training
            self._give_up(str(error))
            return
        self._drain = shipment.drain
        if self._unsent is not None:
            with contextlib.suppress(OSError):
                note_sender(folder, SpoolSender(shipment.origin, shipment.reports_end))
            self._ship_left_over(shipment, self._unsent)
            shipment = replace(shipment, dropped=self._within_bounds(self._unsent))
        if not self._hurry.is_set():
            self._process = ShippingProcess(shipment, folder, self._report)

    def _ship_left_over(self, shipment: PipeShipment, unsent: Path) -> None:
        """Ships the spools of earlier starts first: detect must meet their attempts before this one."""
        deadline = time.monotonic() + LEFT_OVER_S
        for folder, sender in left_over(unsent):
            if end_note(folder) is None:
                mark_end(folder)
            pid = living_process(sender.origin)
            earlier = replace(shipment, origin=sender.origin, reports_end=sender.reports_end, pid=pid)
            self._left_over = ShippingProcess(earlier, folder, self._report)
            arrived = self._left_over.ended(deadline - time.monotonic(), self._late)
            self._left_over.kill()
            if not arrived:
                self._report(f"Kafka did not get all output of an earlier start; the rest is in {folder}")
                return
            shutil.rmtree(folder, ignore_errors=True)

    def _within_bounds(self, unsent: Path) -> int:
        """Drops the oldest spools that are too many, and returns how many bytes of output went with them."""
        dropped = drop_oldest(unsent)
        if dropped.spools:
            self._report(
                f"the output of {dropped.spools} earlier starts, {dropped.size} bytes, never reached Kafka "
                f"and is dropped: {unsent} keeps {MOST_SPOOLS} spools and {MOST_BYTES} bytes at most"
            )
        return dropped.size

    def _late(self) -> bool:
        """Whether the input ended so long ago that its own spool must wait no longer."""
        return self._hurry.is_set() or time.monotonic() > self._ended_at + self._drain

    def _folder(self) -> Path:
        if self._unsent is not None:
            with contextlib.suppress(OSError, LockTaken):
                return make(self._unsent)
            self._unsent = None
        return _folder()

    def _give_up(self, why: str) -> None:
        self._given_up = True
        self._report(f"the output passes through, but nothing is shipped: {why}")

    def _move(self, spool: Spool) -> None:
        """Moves copies from memory to disk until all of the input is there, or the disk stays full."""
        full_since: float | None = None
        while not self._given_up:
            self._more.wait(0.2)
            self._more.clear()
            if self._process is not None:
                self._process.keep()
            ending = self._end.is_set()
            full = not self._emptied(spool)
            now = time.monotonic()
            if full and full_since is None:
                self._report("the disk of the spool is full: output waits in memory")
            full_since = (full_since or now) if full else None
            if self._backlog.dropped and not self._reported_dropped:
                self._reported_dropped = True
                self._report("output comes faster than the spool can store it: the oldest copies are dropped")
            if ending and (full_since is None or now - full_since > self._drain / 2):
                return

    def _emptied(self, spool: Spool) -> bool:
        while piece := self._take():
            start, rest = spool.write(*piece)
            if rest:
                with self._lock:
                    self._backlog.put_back(start, rest)
                return False
        return True

    def _take(self) -> tuple[FilePosition, bytes] | None:
        with self._lock:
            return self._backlog.take()


def _folder() -> Path:
    """Makes a new private directory, in memory where no disk has room for one. Raises OSError."""
    name = f"{FOLDER_PREFIX}{secrets.token_hex(8)}"
    places = [os.environ.get("TMPDIR") or "/tmp", "/tmp", "/dev/shm"]  # noqa: S108 (a new name, mode 0700)
    for place in places[:-1]:
        with contextlib.suppress(OSError):
            Path(place, name).mkdir(0o700)
            return Path(place, name)
    Path(places[-1], name).mkdir(0o700)
    return Path(places[-1], name)
