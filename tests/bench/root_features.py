"""What a fitted order may look at: named numbers of each candidate for the root line. Pure.

They are the features of the order by hand, and more that a log shows. All numbers lie between -1 and 1.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from midwatch.agents.detect.diagnosis.candidates import RootCandidate, speaker
from midwatch.agents.detect.diagnosis.relations.peer_exits import WAITED
from midwatch.agents.detect.diagnosis.root_line import features
from midwatch.agents.detect.diagnosis.verdict import AttemptEnd
from midwatch.agents.detect.line_order import earlier, in_order
from midwatch.streams.records.error_types import family

Numbers = dict[str, float]
_LAUNCHERS = ("slurm", "torchrun", "launcher", "ray", "kubernetes")


def numbers_of(candidates: Sequence[RootCandidate], ending: AttemptEnd) -> list[Numbers]:
    """The numbers of each candidate, in view of all of them. A number that is missing is 0."""
    ordered = sorted(range(len(candidates)), key=lambda index: in_order(candidates[index].hit))
    place = {index: number for number, index in enumerate(ordered)}
    rules = Counter(candidate.hit.rule for candidate in candidates)
    first_of_rule: dict[str, int] = {}
    first_of_speaker: dict[object, int] = {}
    for index in ordered:
        hit = candidates[index].hit
        first_of_rule.setdefault(hit.rule, index)
        first_of_speaker.setdefault((hit.line.file, speaker(hit)), index)
    last = candidates[ordered[-1]].hit.line.number if ordered else 0
    found = []
    for index, candidate in enumerate(candidates):
        hit = candidate.hit
        numbers = _own_numbers(candidate)
        numbers |= {
            "place": place[index] / max(len(candidates) - 1, 1),
            "first of all": float(place[index] == 0),
            "last of all": float(place[index] == len(candidates) - 1),
            "first of its rule": float(first_of_rule[hit.rule] == index),
            "first of its rank": float(first_of_speaker[hit.line.file, speaker(hit)] == index),
            "lines of its rule": math.log2(rules[hit.rule]) / 9,
            "distance from the end": math.log2(1 + max(last - hit.line.number, 0)) / 13,
            "behind a step": float(ending.progress is not None and earlier(ending.progress, hit.line)),
        }
        found.append({name: number for name, number in numbers.items() if number})
    return found


def _own_numbers(candidate: RootCandidate) -> Numbers:
    hit, known = candidate.hit, features(candidate)
    rank, claimed = speaker(hit)
    return {
        "follows": float(known.follows),
        "general": float(known.general),
        "follows and general": float(known.follows and known.general),
        "names no kind": float(known.kindless),
        "says no end": float(known.endless),
        "untyped": float(known.untyped),
        "announces": float(known.follows and hit.role == "cause"),
        "made a follower": float(candidate.reason is not None),
        "waits": float(hit.error_type in WAITED),
        "passes": float(hit.transient is True),
        "lasts": float(hit.transient is False),
        "names a rank": float(rank is not None or claimed is not None),
        "of a launcher": float(hit.subsystem in _LAUNCHERS),
        "has captures": float(bool(hit.captures)),
        "in a stack": float("depth" in hit.captures),
        "has an end": float("exit_code" in hit.captures or "signal_name" in hit.captures),
        "is critical": float(hit.severity in ("critical", "fatal")),
        "has a mode": float(hit.mode is not None),
        f"family {family(hit.error_type)}": 1.0,
    }
