"""Next trial: the agent of a sweep began another trial behind the last failure. Pure.

An agent of Weights & Biases ends a trial that the sweep has given up, and its processes tell of the signal.
A trial that fails counts, and the agent takes the next one from the server. So the sweep went on, unless its
trials fail alike: then the sweep has one cause, and another trial is no better.

Source: wandb wandb/wandb_agent.py.
"""

from __future__ import annotations

import re
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind

_BEGINS = re.compile(
    r"\bwandb_agent - INFO - Agent starting run with config:|\bwandb: Agent Starting Run: \w+ with "
)
_STOPS = re.compile(r"\bwandb_agent - INFO - (?:Stop|Kill): \w+")
_READ = 20_000
_DIGITS = re.compile(r"\d+")


def next_trial_began(file: LogFile, last: int) -> bool:
    """Whether a sweep's agent began a trial behind line `last`, and the trials did not fail alike.

    Raises OSError.
    """
    if not any(_BEGINS.search(line) for line in islice(lines_behind(file, last), _READ)):
        return False
    first = max(last - _READ, 0)
    above = list(islice(lines_behind(file, first), last - first))
    return _was_stopped(above) or not _failed_before(above)


def _trials(above: list[str]) -> list[list[str]]:
    """The lines of each trial. What stands in front of the first is the agent's."""
    trials: list[list[str]] = [[]]
    for line in above:
        if _BEGINS.search(line):
            trials.append([])
        trials[-1].append(line)
    return trials


def _was_stopped(above: list[str]) -> bool:
    """Whether the sweep itself asked for the end of the trial that stands last."""
    return any(_STOPS.search(line) for line in _trials(above)[-1])


def _failed_before(above: list[str]) -> bool:
    """Whether an earlier trial ended with the words of the last line, whatever their numbers."""
    words = _form(above[-1]) if above else ""
    return any(_form(line) == words for trial in _trials(above)[:-1] for line in trial)


def _form(line: str) -> str:
    return _DIGITS.sub("0", line).strip()
