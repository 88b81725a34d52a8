"""Rule watches: a rule counts until a line ends its watch, and up to its rate limit.

The rates use the times of the lines, so a refold of a recording gives the same result.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.records import Hit, HitCount, Spent, Stop

_COUNTS = 256
_RULES = 1024


def end_watch(turn: Turn, stop: Stop) -> None:
    """End the watch: from here on no hit of the rule counts in this attempt."""
    if stop.rule not in turn.state.stopped and len(turn.state.stopped) < _RULES:
        turn.set(stopped=(*turn.state.stopped, stop.rule))


def is_watched(turn: Turn, rule: str) -> bool:
    """Whether hits of the rule still count: no line has ended its watch."""
    return rule not in turn.state.stopped


def spend(turn: Turn, hit: Hit) -> bool:
    """Count the hit against its rule's rate limit. Returns whether the limit allows the hit.

    A window begins at the first hit after the end of the previous window. A late line, of a time before the
    present window, counts in the present one: windows never go back.
    """
    limit = hit.limit
    if limit is None:
        return True
    rates = dict(turn.state.rates)
    spent = rates.pop(hit.rule, None)
    if spent is None or hit.line.time - spent.since >= limit.seconds:
        spent = Spent(hit.line.time, 0)
    allowed = spent.hits < limit.hits
    rates[hit.rule] = replace(spent, hits=spent.hits + allowed)
    turn.set(rates=dict(list(rates.items())[-_RULES:]))
    return allowed


def count(turn: Turn, further: Iterable[HitCount]) -> None:
    """Note hits that are evidence only. All hits of one rule, rank and file are one count."""
    sums = {(more.rule, more.rank, more.path): more for more in turn.state.counts}
    for more in further:
        name = (more.rule, more.rank, more.path)
        known = sums.get(name)
        if known is not None:
            sums[name] = replace(
                known,
                count=known.count + more.count,
                first_number=min(known.first_number, more.first_number),
                last_number=max(known.last_number, more.last_number),
            )
        elif len(sums) < _COUNTS:
            sums[name] = more
    turn.set(counts=tuple(sums.values()))


def count_hits(turn: Turn, hits: Iterable[Hit]) -> None:
    """Note hits that are evidence only, one by one."""
    places = ((hit.rule, hit.line) for hit in hits)
    count(turn, [HitCount(rule, at.rank, 1, at.number, at.number, at.path) for rule, at in places])
