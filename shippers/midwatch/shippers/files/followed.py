"""Follows files of paths, globs and directories through rotation, truncation and deletion."""

from __future__ import annotations

import errno
import glob
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Literal

from midwatch.shippers.files.fingerprint import generation
from midwatch.shippers.files.packed import ENDINGS, unpacked
from midwatch.shippers.files.sent_positions import Remembered
from midwatch.shippers.files.siblings import (
    COMPRESSED,
    Identity,
    Sibling,
    newer,
    packed_siblings,
    regular,
    same_file,
    siblings,
    unreachable,
)
from midwatch.shippers.files.tail import FilePosition, Now, Tail
from midwatch.shippers.messages import Report
from midwatch.streams.records import Generation

Start = Literal["checkpoint", "beginning", "end"]

RESCAN = 1.0
"""Seconds between two expansions of globs and directories."""

GRACE = 10.0
"""Seconds without growth after which a renamed or deleted file is closed."""

_OPEN_LEAVING = 64  # renamed or deleted files, already read to their end, that stay open for late writers


class FollowedFiles:
    """The files of one shipper. `poll` finds them and notes their sizes; the caller reads them."""

    def __init__(
        self,
        patterns: Sequence[str],
        *,
        start: Start = "checkpoint",
        remembered: Sequence[Remembered] = (),
        report: Report = lambda _: None,
    ) -> None:
        self._patterns = tuple(os.path.abspath(os.path.expanduser(p)) for p in patterns)
        self._start = start
        self._report = report
        self.tails: list[Tail] = []
        self._current: dict[str, Tail] = {}
        self._finished: dict[Identity, Remembered] = {}
        self._truncations: dict[Identity, int] = {}
        self._paths: tuple[str, ...] = ()
        self._siblings_since: dict[
            str, int
        ] = {}  # by path: siblings written at this time (ns) or later are new
        self._last_known: dict[str, Remembered] = {}  # by path: the last file known under it
        self._already_rotated: set[Identity] = set()  # files that were rotated away before the first look
        self._scan_at = float("-inf")
        self._first = True
        self.truncated = 0
        """Number of truncations seen."""
        self.dropped = 0
        self.blind = False
        """Whether at the last poll a file existed and could not be read."""
        self.ended = False
        self._unreadable: set[str] = set()
        self._unpacked: set[Identity] = set()
        if start == "checkpoint":
            for entry in remembered:
                self._restore(entry, remembered)

    def poll(self, now: Now, *, rescan: bool = False) -> None:
        """Finds new files, notes sizes, and closes files that are done."""
        if rescan or now.monotonic >= self._scan_at:
            self._scan_at = now.monotonic + RESCAN
            self._paths = tuple(self._expanded())
            self._forget()
        self.blind = False
        for tail in list(self.tails):
            try:
                same = tail.look(now)
            except OSError as error:  # a stale handle of a network file system
                self._report(f"{tail.path} cannot be followed: {error.strerror}")
                tail.ended = tail.leaving = True
                continue
            if not same:
                self._truncate(tail, now)
        for path in self._paths:
            self._visit(path, now)
        self._first = False
        self._retire(now)

    def acknowledge(self, generation: Generation, position: FilePosition) -> None:
        """Notes that the broker has that file up to `position`."""
        for tail in self.tails:
            if tail.generation == generation:
                tail.acknowledged = position

    def remembered(self) -> tuple[Remembered, ...]:
        """The checkpoint's entries for a later start; their positions are the acknowledged ones."""
        known = [_entry(t, finished=False) for t in self.tails if not t.ended]
        known += self._finished.values()
        identities = {_identity(entry) for entry in known}
        return (*known, *(e for e in self._last_known.values() if _identity(e) not in identities))

    def rewind(self) -> None:
        """Goes back in all files to what the broker acknowledged."""
        lost = sum(tail.rewind() for tail in self.tails)
        if lost:
            self._report(f"{lost} bytes of truncated files could not be sent and cannot be read again")

    def close(self) -> None:
        """Closes all files."""
        for tail in self.tails:
            tail.close()
        self.tails.clear()

    def _expanded(self) -> Iterable[str]:
        seen: dict[str, None] = {}
        for pattern in self._patterns:
            if os.path.isdir(pattern):
                found = [os.path.join(pattern, n) for n in sorted(_names(pattern)) if not n.startswith(".")]
            elif glob.has_magic(pattern) and not os.path.exists(pattern):
                found = sorted(glob.glob(pattern, recursive=True))
            else:
                seen[pattern] = None
                continue
            seen |= dict.fromkeys(p for p in found if not p.endswith(COMPRESSED))
        return seen

    def _visit(self, path: str, now: Now) -> None:
        here, tail = regular(path), self._current.get(path)
        if here is None and path in self._patterns and (why := unreachable(path)):
            self.blind = True
            self._cannot_read(path, why)
        if here and tail and here.identity == tail.identity:
            return
        if tail:
            tail.leaving = True
            self._siblings_since[path] = tail.modified_ns
            self._last_known[path] = _entry(tail, finished=False)
            del self._current[path]
        if self._first and not (here and here.size) and path not in self._siblings_since:
            self._siblings_since[path] = 0
            self._already_rotated |= {s.identity for s in siblings(path)}
        elif path in self._siblings_since:
            # Files that were written and rotated away between two looks come before the present file.
            known = self._followed() | set(self._finished) | self._already_rotated
            for sibling in newer(path, self._siblings_since[path], known):
                self._begin(sibling, path, now)
        if here and here.size and not self._follows(here.identity):
            if self._begin(here, path, now):
                self._siblings_since.pop(path, None)
                self._last_known.pop(path, None)
            else:
                self.blind = True

    def _begin(self, here: Sibling, path: str, now: Now) -> bool:
        """Follows that file; False if it is gone."""
        entry = self._finished.get(here.identity)
        if entry and here.size == entry.position.offset:
            return True
        tail = self._open(here, path)
        if not tail:
            return False
        if entry:
            del self._finished[here.identity]
            if here.size > entry.position.offset and entry.probe.fits(tail.descriptor):
                tail.resume(entry.generation, entry.position)
            else:
                again = entry.generation.truncations + 1
                tail.resume(replace(tail.generation, truncations=again), FilePosition())
        elif self._first and self._start == "end":
            tail.resume(tail.generation, tail.end())
        self._follow(tail, here, path)
        tail.look(now)
        return True

    def _restore(self, entry: Remembered, remembered: Sequence[Remembered]) -> None:
        identity = _identity(entry)
        if entry.finished:
            self._finished[identity] = entry
            return
        found = same_file(entry.path, identity)
        tail = self._open(found, entry.path) if found else None
        same = found and tail and found.size >= entry.position.offset and entry.probe.fits(tail.descriptor)
        if not same or (found and found.path != entry.path):
            self._siblings_since[entry.path] = entry.modified_ns
            self._last_known[entry.path] = entry
        if found and tail and same:
            tail.resume(entry.generation, entry.position)
            self._follow(tail, found, entry.path)
            return
        if tail:
            tail.close()
            self._truncations[identity] = entry.generation.truncations + 1
            if self._drain_copy(entry, entry.position, Now(0.0, 0.0)):
                return
        if not self._read_packed(entry, remembered):
            self._report(
                f"{entry.path}: the file that was read up to byte {entry.position.offset} is gone, and no "
                "whole copy lies beside it; unread lines are lost. Logrotate's `delaycompress` keeps a copy"
            )

    def _read_packed(self, entry: Remembered, remembered: Sequence[Remembered]) -> bool:
        """Follows the packed copy of a file that is gone, and packed files that came and went after it.

        True if the copy of the file is among them.
        """
        others = [each for each in remembered if each.path == entry.path and each is not entry]
        found = False
        for sibling in packed_siblings(entry.path, ENDINGS, entry.modified_ns):
            if sibling.identity in self._unpacked or (descriptor := unpacked(sibling, self._report)) is None:
                continue
            size = os.fstat(descriptor).st_size
            if not found and size >= entry.position.offset and entry.probe.fits(descriptor):
                known, position, found = entry.generation, entry.position, True
            elif any(size >= each.position.offset and each.probe.fits(descriptor) for each in others):
                os.close(descriptor)
                continue
            else:
                known, position = generation(descriptor), FilePosition()
            self._unpacked.add(sibling.identity)
            tail = Tail(descriptor, entry.path, known, position)
            tail.leaving = tail.complete = tail.unpacked = True
            self.tails.append(tail)
        return found

    def _follow(self, tail: Tail, here: Sibling, path: str) -> None:
        self.tails.append(tail)
        tail.leaving = here.path != path
        if not tail.leaving:
            self._current[path] = tail

    def _truncate(self, tail: Tail, now: Now) -> None:
        tail.ended = tail.leaving = True
        self._current = {path: t for path, t in self._current.items() if t is not tail}
        self._truncations[tail.identity] = tail.generation.truncations + 1
        self.truncated += 1
        self._report(f"{tail.path} was truncated; it had been read up to byte {tail.position.offset}")
        self._drain_copy(_entry(tail, finished=False), tail.position, now)

    def _drain_copy(self, entry: Remembered, position: FilePosition, now: Now) -> bool:
        """Follows the copy that "copytruncate" made of a file: it holds the lines that were not read yet.

        False if there is none.
        """
        for sibling in newer(entry.path, entry.modified_ns, self._followed()):
            tail = self._open(sibling, entry.path)
            if tail and sibling.size >= position.offset and entry.probe.fits(tail.descriptor):
                tail.resume(tail.generation, position)
                self._follow(tail, sibling, entry.path)
                tail.look(now)
                return True
            if tail:
                tail.close()
        return False

    def _open(self, here: Sibling, label: str) -> Tail | None:
        try:
            descriptor = os.open(here.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            if error.errno != errno.ENOENT:
                self._cannot_read(here.path, error.strerror or str(error))
            return None
        known = generation(descriptor, self._truncations.get(here.identity, 0))
        if (known.device, known.inode) != here.identity:  # renamed between the look and now
            os.close(descriptor)
            return None
        return Tail(descriptor, label, known, FilePosition())

    def _cannot_read(self, path: str, why: str) -> None:
        if path not in self._unreadable:
            self._unreadable.add(path)
            self._report(f"{path} cannot be read: {why}; its lines are missing until it can be read")

    def _followed(self) -> set[Identity]:
        return {t.identity for t in self.tails if not t.unpacked}

    def _follows(self, identity: Identity) -> bool:
        return any(t.identity == identity and not t.ended and not t.unpacked for t in self.tails)

    def _retire(self, now: Now) -> None:
        idle = [t for t in self.tails if t.leaving and t.at_end and t.settled]
        spare = len(idle) - _OPEN_LEAVING
        for tail in idle:
            if tail.ended or now.monotonic - tail.quiet_since >= GRACE or spare > 0:
                spare -= 1
                self.tails.remove(tail)
                tail.close()
                if tail.unpacked:
                    before = self._last_known.get(tail.path)
                    if before is not None and before.generation == tail.generation:
                        self._last_known[tail.path] = _entry(tail, finished=False)
                elif not tail.ended:
                    self._finished[tail.identity] = _entry(tail, finished=True)

    def _forget(self) -> None:
        """Drops the entries of files that are gone: their inode may become another file's."""
        paths = {entry.path for entry in self._finished.values()}
        present = {s.identity for path in paths for s in (regular(path), *siblings(path)) if s}
        self._finished = {i: entry for i, entry in self._finished.items() if i in present}


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:  # the directory was there a moment ago
        return []


def _identity(entry: Remembered) -> Identity:
    return entry.generation.device, entry.generation.inode


def _entry(tail: Tail, *, finished: bool) -> Remembered:
    return Remembered(tail.path, tail.generation, tail.acknowledged, tail.probe, tail.modified_ns, finished)
