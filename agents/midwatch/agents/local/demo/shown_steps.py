"""The steps of a job that the demo has shown, where each reading of the topics may find earlier ones. Pure.

The topics are read one after the other. So an outcome may be there before its command, and a step may come
to light that stands above others in time.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from midwatch.agents.query.timeline import Timed, Timeline
from midwatch.streams.records import Outcome


@dataclass(slots=True)
class ShownSteps:
    """What was shown, so that each step is shown once."""

    _shown: list[Timed] = field(default_factory=list)

    def lines(self, timeline: Timeline, *, last: bool = False) -> list[str]:
        """The lines of the steps that are new. What stands behind an outcome without its command waits.

        `last`: no reading follows, so nothing waits.
        """
        found = list[str]()
        for step in timeline.steps:
            if step in self._shown:
                continue
            if not last and _lacks_its_command(step, timeline):
                break
            self._shown.append(step)
            if (line := timeline.line_of(step)) is not None:
                found.append(line)
        return found


def _lacks_its_command(step: Timed, timeline: Timeline) -> bool:
    """Whether it is an outcome whose command, and so the number of its restart, is not known yet."""
    outcome = step.record
    if not isinstance(outcome, Outcome):
        return False
    return all(command.id != outcome.command for each in timeline.attempts for command in each.commands)
