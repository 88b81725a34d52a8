"""How the user's own restarts ended, counted by the class of the end before them. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from midwatch.agents.detect.diagnosis.chance import end_class
from midwatch.agents.policies.restarts import has_passed
from midwatch.agents.query.timeline import Timeline
from midwatch.agents.rulesets.outcomes import Counts
from midwatch.streams.records import Incident


def counted_restarts(timelines: Iterable[Timeline]) -> Counts:
    """By class of the end: how many restarts passed, and how many there were.

    A restart counts once its attempt has ended. It passed if that attempt ended well, or got beyond the step
    at which the one before it had failed. What a person cancelled before that does not count, nor an attempt
    that failed otherwise where no step tells.
    """
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for timeline in timelines:
        incidents = {attempt.number: attempt.incident for attempt in timeline.attempts}
        for attempt in timeline.attempts:
            before, after = attempt.incident, incidents.get(attempt.number + 1)
            if attempt.restarted is None or before is None or after is None:
                continue
            passed = has_passed(before, after)
            if passed is not None and before.verdict.state == "failed":
                name = _class_of(before)
                so_far, of = found[name]
                found[name] = (so_far + passed, of + 1)
    return dict(sorted(found.items()))


def _class_of(incident: Incident) -> str:
    verdict = incident.verdict
    # An older midwatch wrote no chance. Its verdict tells of a step only by the step's number.
    stepped = verdict.chance.stepped if verdict.chance else verdict.step is not None
    return end_class(verdict, stepped=stepped).name
