"""Detect with the silence that everybody writes first: the present time minus that of the last line."""

from __future__ import annotations

from midwatch.agents import detect
from midwatch.agents.incident import fold, lines, sight
from midwatch.agents.incident.turn import Turn
from midwatch.rules.detectors.silence import Pulse, Quorum
from midwatch.streams.connection import with_connection
from midwatch.streams.settings_file import load_settings
from midwatch.streams.settings_reader import Assignment

_last_line_ms: dict[str, int] = {}
_now_ms = 0
_job = ""
_look = sight.look
_progress = lines._progress


def _remember(turn: Turn, node: str, line: lines.Step) -> None:
    _last_line_ms[turn.state.job] = turn.now_ms
    _progress(turn, node, line)


def _look_now(turn: Turn) -> None:
    global _now_ms, _job  # a mutant need not be pretty
    _now_ms, _job = turn.now_ms, turn.state.job
    _look(turn)


def _since_last_line(pulses: dict[str, Pulse], seen: Quorum) -> float:  # noqa: ARG001  # the real one's signature
    return (_now_ms - _last_line_ms.get(_job, _now_ms)) / 1000


def _every_second(turn: Turn) -> int | None:
    return turn.now_ms + 1000 if turn.running() else None


def _whole(*_: object, **__: object) -> Quorum:
    return Quorum(True, (), ())


if __name__ == "__main__":
    setattr(lines, "_progress", _remember)  # noqa: B010  # mypy would refuse the plain form
    setattr(sight, "look", _look_now)  # noqa: B010  # as above
    setattr(fold, "look", _look_now)  # noqa: B010  # as above
    setattr(fold, "sight_due", _every_second)  # noqa: B010  # as above
    setattr(sight, "silence_of_job", _since_last_line)  # noqa: B010  # as above
    setattr(sight, "quorum", _whole)  # noqa: B010  # as above
    # Nobody waits long for last words here: the rest of the watch must not save the mutant from itself.
    quick = [
        Assignment(("worker", "session_timeout"), "2s", "mutant"),
        Assignment(("detect", "settle_grace"), "1s", "mutant"),
        Assignment(("detect", "settle_max"), "2s", "mutant"),
    ]
    detect.run(with_connection(load_settings(None, options=quick)))
