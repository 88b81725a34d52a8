"""Detect with the silence that everybody writes first: the present time minus that of the last line.

Nothing else of the watch is changed: its quorum, its settling and its options are those of the real one.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence

from integration.chain.installation import OPTIONS
from midwatch.agents.cli import main
from midwatch.agents.detect.incident import lines
from midwatch.agents.detect.incident import quorum as sight
from midwatch.agents.detect.incident.progress import ProgressLine, go_on
from midwatch.agents.detect.incident.turn import Turn
from midwatch.rules.detectors.silence import Pulse, Quorum

_last_line_ms: dict[str, int] = {}  # by job


def _remember(turn: Turn, node: str, steps: Sequence[ProgressLine]) -> None:
    if steps:
        _last_line_ms[turn.state.job] = turn.now_ms
    go_on(turn, node, steps)


def _since_last_line(pulses: Mapping[str, Pulse], seen: Quorum) -> float:
    now_ms = max(pulses[name].last_ms for name in seen.present)
    (last_line_ms,) = _last_line_ms.values()  # it watches one job only
    return (now_ms - last_line_ms) / 1000


if __name__ == "__main__":
    setattr(lines, "go_on", _remember)  # noqa: B010  # mypy would refuse the plain form
    setattr(sight, "silence_of_job", _since_last_line)  # noqa: B010  # as above
    sys.argv[1:] = ["worker", "detect", *(f"--set={option}" for option in OPTIONS)]
    main()
