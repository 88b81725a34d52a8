"""How a restart went, by the ends before and after it. Pure."""

from __future__ import annotations

from midwatch.streams.records import Incident


def has_passed(before: Incident, after: Incident) -> bool | None:
    """Whether the restart after the first incident passed, by how its attempt ended; None if that is open.

    It passed if its attempt ended well or got beyond the step of the failure. It did not if it failed in the
    same way, or not beyond that step.
    """
    then, now = before.verdict, after.verdict
    if after.state != "settled":
        return None
    if now.state == "healthy" or (now.step is not None and (then.step is None or now.step > then.step)):
        return True
    if after.scheduler is not None and after.scheduler.by_person:
        return None
    same = (then.error_type, then.rule, then.mode) == (now.error_type, now.rule, now.mode)
    return False if same or then.step is not None else None


def attempts_in_vain(known: tuple[int, ...], before: Incident | None, after: Incident) -> tuple[int, ...]:
    """The latest attempts in a row that were restarts and did not pass, with that of `after`.

    `before`: the incident whose accepted restart may have started it. A later revision of `after` counts in
    place of the earlier one.
    """
    if before is None or before.attempt != after.attempt - 1:
        return known
    others = tuple(attempt for attempt in known if attempt != after.attempt)
    passed = has_passed(before, after)
    if passed is None:
        return others
    return () if passed else (*others, after.attempt)
