"""Silence of a job: counted from heartbeats, not a difference of clocks (`docs/design.md`, Silence is
counted).

Each heartbeat adds the shipper's monotonic time since its previous heartbeat to the count of its node. It
adds at most two intervals. It adds nothing unless every file was read to the size that it had at the poll's
start. So a slow or stopped shipper, match, broker or detect can only make the count too small, never too
large.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

from midwatch.rules.detectors.base import Sighting, Sign, SilenceSeen, Stalled

MISSED_INTERVALS = 3  # a node whose last heartbeat is older than this many of its intervals is missing


@dataclass(frozen=True, slots=True)
class Pulse:
    """The last heartbeat of one node's shipper, and the silence counted so far.

    `silence`, `interval` and `monotonic` are in seconds; `last_ms` is an append time in milliseconds.
    """

    shipper: str = ""
    sequence: int = -1
    monotonic: float = 0.0
    last_ms: int = 0
    interval: float = 5.0
    silence: float = 0.0

    def missing_at(self) -> int:
        """The append time (ms) from which this node counts as missing."""
        return self.last_ms + int(MISSED_INTERVALS * self.interval * 1000) + 1


@dataclass(frozen=True, slots=True)
class HeartbeatTaken:
    """A pulse after one heartbeat; `fresh` is False if the heartbeat was dropped as a repeat."""

    pulse: Pulse
    fresh: bool


def take_heartbeat(
    pulse: Pulse, *, shipper: str, sequence: int, monotonic: float, interval: float, at_end: bool, now_ms: int
) -> HeartbeatTaken:
    """Fold one heartbeat. Drops a sequence number not above the last one of the same shipper start."""
    if shipper != pulse.shipper:
        # After a new start of the shipper its clock cannot be compared with the old one: add nothing.
        return HeartbeatTaken(
            replace(
                pulse,
                shipper=shipper,
                sequence=sequence,
                monotonic=monotonic,
                last_ms=now_ms,
                interval=interval,
            ),
            True,
        )
    if sequence <= pulse.sequence:
        return HeartbeatTaken(pulse, False)
    passed = min(max(monotonic - pulse.monotonic, 0.0), 2 * interval) if at_end else 0.0
    return HeartbeatTaken(
        Pulse(shipper, sequence, monotonic, now_ms, interval, pulse.silence + passed),
        True,
    )


@dataclass(frozen=True, slots=True)
class Quorum:
    """Whether enough nodes of an attempt are present to call it silent; if not, `reason` says why."""

    holds: bool
    present: tuple[str, ...]
    missing: tuple[str, ...]
    reason: str = ""


def quorum(
    pulses: Mapping[str, Pulse], *, nodes: int, progress_nodes: Collection[str], now_ms: int
) -> Quorum:
    """Whether the present nodes suffice to judge the attempt's silence.

    At most max(1, 10 %) of the nodes may be missing; of a one-node job none. A node that printed the latest
    progress must be present. `nodes` is the number of nodes that the attempt started on. A node that never
    sent a heartbeat is missing too, without a name.
    """
    present = tuple(sorted(n for n, p in pulses.items() if now_ms < p.missing_at()))
    missing = tuple(sorted(set(pulses) - set(present)))
    expected = max(nodes, len(pulses))
    absent = expected - len(present)
    allowed = 0 if expected == 1 else max(1, expected // 10)
    if absent > allowed:
        names = ", ".join(missing) if missing else "never heard of"
        return Quorum(False, present, missing, f"{absent} of {expected} nodes give no sign of life ({names})")
    if progress_nodes and not set(progress_nodes) & set(present):
        names = ", ".join(sorted(progress_nodes))
        return Quorum(
            False, present, missing, f"the node that printed the latest progress gives none ({names})"
        )
    return Quorum(True, present, missing)


def silence_of_job(pulses: Mapping[str, Pulse], seen: Quorum) -> float:
    """Seconds of silence of the whole job: the smallest count in its quorum; 0 without a quorum."""
    if not seen.holds or not seen.present:
        return 0.0
    return min(pulses[n].silence for n in seen.present)


@dataclass(frozen=True, slots=True)
class NoState:
    """What a detector remembers that weighs each sighting by itself."""


@dataclass(frozen=True, slots=True)
class SilenceDetector:
    """A job that is silent for as long as its phase allows hangs. The counts are those of its nodes."""

    name: str = "silence"
    version: str = "1"

    def start(self) -> NoState:
        """Nothing is remembered here."""
        return NoState()

    def observe(self, state: NoState, seen: Sighting) -> tuple[NoState, tuple[Sign, ...]]:
        """At the limit, and again at each look behind it."""
        if isinstance(seen, SilenceSeen) and seen.silence >= seen.limit:
            return state, (Stalled(seen.silence),)
        return state, ()
