"""What the fold shows to the detectors in force, and what their signs do to the job."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from midwatch.agents.detect.incident.settling import end
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Cleared, Detector, Opened, Sighting, Sign, Stalled
from midwatch.streams.records import DetectorMemory, codec

STATE_LIMIT = 16 * 1024
"""Bytes of JSON that a foreign detector may remember of one attempt: it travels with each snapshot."""
_FIELDS = {"loss_spike": "losses"}
"""The fields of a job's state that hold the states of detectors with memory that ship with midwatch."""


class _Refused(Exception):
    """The detector gave what no foreign detector may give."""


class Watch:
    """The detectors at work on one record: each state is read once, and written once by `keep`."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        detectors = turn.detectors.items()
        self._own = [(name, each) for name, each in detectors if name in DETECTORS]
        self._foreign = [(name, each) for name, each in detectors if name not in DETECTORS]
        self._before: dict[str, Any] = {}
        self._now: dict[str, Any] = {
            name: getattr(turn.state, _FIELDS[name]) if name in _FIELDS else each.start()
            for name, each in self._own
        }
        self._failed = {name for name in turn.detectors if self._has_failed(name)}

    def show(self, seen: Sighting) -> None:
        """Ask every detector what follows, in the order of the mapping."""
        now = self._now
        for name, detector in self._own:
            now[name], signs = detector.observe(now[name], seen)
            if signs:
                for sign in signs:
                    self._heed(name, sign)
        for name, detector in self._foreign:
            if name not in self._failed:
                self._ask_foreign(name, detector, seen)

    def keep(self, **further: Any) -> None:
        """Write what changed into the job's state, and the `further` fields with it."""
        state = self._turn.state
        fields = {_FIELDS[name]: now for name, now in self._now.items() if name in _FIELDS}
        own = further | {field: now for field, now in fields.items() if now is not getattr(state, field)}
        foreign = {name: now for name, now in self._now.items() if name not in DETECTORS}
        changed = {name: now for name, now in foreign.items() if now != self._before[name]}
        if changed or self._failed - {name for name, known in state.detectors.items() if known.failed}:
            own["detectors"] = {**state.detectors, **self._memories(changed)}
        if own:
            self._turn.set(**own)

    def _ask_foreign(self, name: str, detector: Detector[Any], seen: Sighting) -> None:
        """Whatever it raises, the job's incident must go on: it is told of once, by its kind alone."""
        try:
            if name not in self._now:
                self._before[name] = self._now[name] = self._remembered(name, detector)
            now, signs = detector.observe(self._now[name], seen)
            _check(now, signs)
        except Exception as error:
            self._fail(
                name, detector, type(error).__name__ if not isinstance(error, _Refused) else str(error)
            )
            return
        self._now[name] = now
        for sign in signs:
            self._heed(name, sign)

    def _heed(self, name: str, sign: Sign) -> None:
        match sign:
            case Opened():
                self._turn.open_finding(_kind(name, sign), sign.detail, quantities=dict(sign.quantities))
            case Cleared():
                self._turn.clear_finding(_kind(name, sign), sign.detail)
            case Stalled():
                end(self._turn, stalled=sign.seconds)

    def _remembered(self, name: str, detector: Detector[Any]) -> Any:
        """Its state; another version begins anew."""
        start, known = detector.start(), self._turn.state.detectors.get(name)
        if known is None or known.version != detector.version:
            self._turn.clear_finding(_failure(name), f"version {detector.version} is asked")
            return start
        return codec.state_from_bytes(known.state.encode(), type(start))

    def _has_failed(self, name: str) -> bool:
        known = self._turn.state.detectors.get(name)
        return known is not None and known.failed and known.version == self._turn.detectors[name].version

    def _fail(self, name: str, detector: Detector[Any], why: str) -> None:
        self._failed.add(name)
        self._now.pop(name, None)
        told = f"the detector {name} {detector.version} failed ({why}): it is not asked again in this attempt"
        self._turn.open_finding(_failure(name), told)

    def _memories(self, changed: dict[str, Any]) -> dict[str, DetectorMemory]:
        versions = {name: each.version for name, each in self._turn.detectors.items()}
        failed = {name: DetectorMemory(versions[name], "", failed=True) for name in self._failed}
        kept = {
            name: DetectorMemory(versions[name], codec.state_to_bytes(now).decode())
            for name, now in changed.items()
        }
        return kept | failed


def show(turn: Turn, seen: Sighting) -> None:
    """One sighting by itself."""
    watch = Watch(turn)
    watch.show(seen)
    watch.keep()


def _kind(name: str, sign: Opened | Cleared) -> str:
    return f"{name}:{sign.about}" if sign.about else name


def _failure(name: str) -> str:
    return f"detector_failed:{name}"


def _check(state: Any, signs: Sequence[Sign]) -> None:
    """What is taken of a stranger: findings that our records can hold, and a state that can be kept."""
    for sign in signs:
        if not isinstance(sign, Opened | Cleared):
            raise _Refused(f"{type(sign).__name__} is no sign for a foreign detector")
        if codec.out_of_bounds(sign):
            raise _Refused("a sign that no record can hold")
    blob = codec.state_to_bytes(state)
    if len(blob) > STATE_LIMIT:
        raise _Refused(f"its state has more than {STATE_LIMIT} bytes")
    if msgspec.json.decode(blob, type=type(state)) != state:
        raise _Refused("its state is another one once it was kept as JSON")
