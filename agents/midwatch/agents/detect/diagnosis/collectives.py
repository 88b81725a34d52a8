"""Whether ranks that timed out had waited in one collective, or each in another. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from midwatch.streams.records import Hit, Verdict

_GROUP = re.compile(r"\[PG (?:ID )?(\d+)")


def out_of_step(verdict: Verdict, hits: Sequence[Hit]) -> Verdict:
    """Ranks that waited in different collectives went apart by the program's own doing."""
    if verdict.family != "comms" or not verdict.transient or not (kinds := _went_apart(hits)):
        return verdict
    doubt = f"ranks waited in different collectives ({', '.join(kinds)}): the same start may go apart again"
    return replace(verdict, transient=None, doubt=doubt)


def _went_apart(hits: Sequence[Hit]) -> tuple[str, ...]:
    """The kinds of collective in which ranks of one process group waited, if they are several; else nothing.

    One that hangs leaves all others in the same collective. Ranks that wait in different ones called them in
    another order, and that is the program's doing.
    """
    waited: dict[str, dict[str, set[int]]] = {}
    for hit in hits:
        rank = hit.line.rank if hit.line.rank is not None else hit.line.claimed_rank
        if "collective" not in hit.captures or rank is None:
            continue
        found = _GROUP.search(hit.line.text)
        group = waited.setdefault(found[1] if found else "", {})
        group.setdefault(hit.captures["collective"], set()).add(rank)
    for group in waited.values():
        ranks = list(group.values())
        if any(one.isdisjoint(other) for one in ranks for other in ranks):
            return tuple(sorted(group))
    return ()
