"""Own counts: the steps that a program prints in a form that no rule knows. Pure.

Rules know the steps of frameworks. A loop written by hand prints its own: a number that rises from line to
line, and measures of a training beside it. A saved file shows many such lines at once, so their form is
read from them and becomes a progress rule for this text alone. It says only that the training goes round.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple
from zlib import crc32

from midwatch.agents.match.chunk_hits import When, match
from midwatch.agents.replay.reading.printed_forms import CLOCK, LEVEL, NUMBER, own_part
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Phase, Role, Rule, Severity, Shows
from midwatch.streams.records import Chunk, Hits

NAME = "own_count"
"""Begins the names of such rules in progress records; a form has the same name in each part of a file."""
_LEAST = 6
"""Lines of a form, and different counts in them."""
_FORMS = 4
_READ_WHOLE, _SOME = 512 * 1024, 100
"""Bytes of a file in which each line is read for its form, and lines of each later chunk."""
_LONGEST, _LONGEST_PATTERN = 300, 4096
_PARTS = re.compile(rf"(?P<clock>{CLOCK})|(?P<number>{NUMBER})|(?P<level>{LEVEL})|(?P<blanks>\s+)")
_AS = {
    "clock": r"\d[\w:/.,T -]*\d",
    "number": r"[-+]?(?:\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|[nN][aA][nN]|[iI]nf)",
    "level": r"[A-Z]+",
    "blanks": r"\s*",
}
_OF_A_TRAINING = re.compile(
    r"(?i)(?:\b|_)(?:\w*loss|nll|b?ce|mse|rmse|mae|\w*xent|\w*entropy|ppl|perplexity|\w*rewards?|ep_?rew\w*|returns?"
    r"|\w*acc(?:uracy)?|elbo|kl|obj\w*|cost|err|grad\w*|lr|td|auc|[mf]\w{0,2}iou|psnr|fid|elo|critic|disc|gen|wer|cer)"
    r"(?:\b|_)"
)
_NO_STEP = re.compile(
    r"(?i)\b(?:wait\w*|retr(?:y|ies|ying)|heart ?beats?|poll\w*|sleep\w*|upload\w*|download\w*|restart\w*"
    r"|val(?:id\w*)?|eval\w*|test|trials?|warm-?up|synthetic|pid|terminated)\b|\A\s*File |wandb:"
)

_OF_A_LIST = re.compile(
    r"(?i)(?:class|layer|gpu|device|query|question|sample|doc\w*|fold|seed|client|rank|worker|actor|process|item|row"
    r"|case|example|prompt|file|shard)\W*\Z"
)
"""Words in front of a number that tells which of many, not how far."""


class _Counted(NamedTuple):
    own: str
    numbers: tuple[str, ...]


def with_own_counts(chunk: Chunk, hits: Hits | None, bundle: str, when: When) -> Hits | None:
    """The hits of the chunk, and as progress the steps that it prints in a form of its own.

    Where a rule knows the steps, nothing is added. `when`: see `match`.
    """
    if hits is not None and any(each.shows in ("step", "training") for each in hits.progress):
        return hits
    rules = _rules_for(_read(chunk))
    if not rules:
        return hits
    own = match(chunk, compile_rules(rules, scan=False), bundle, 0, when=when)
    if own is None or hits is None:
        return own or hits
    return replace(hits, progress=(*hits.progress, *own.progress))


def _read(chunk: Chunk) -> list[str]:
    """The lines that are read for forms: all of a file's first part, and of later parts some."""
    lines = chunk.text.decode("utf-8", "replace").splitlines()
    if max((section.end for section in chunk.sections), default=0) <= _READ_WHOLE:
        return lines
    begin = max((len(lines) - _SOME) // 2, 0)
    return lines[begin : begin + _SOME]


def _rules_for(lines: Sequence[str]) -> list[Rule]:
    found: dict[str, list[_Counted]] = defaultdict(list)
    for line in lines:
        if len(line) > _LONGEST or _OF_A_TRAINING.search(line) is None:
            continue
        own = own_part(line)
        if _NO_STEP.search(own) is None:
            numbers = tuple(part[0] for part in _PARTS.finditer(own) if part.lastgroup == "number")
            if len(numbers) > 1:
                found[_PARTS.sub(_kind, own)].append(_Counted(own, numbers))
    counted = ((lines, place) for lines in found.values() if (place := _counter(lines)))
    every = (_pattern(lines[0].own, place) for lines, place in counted)
    patterns = {pattern for pattern in every if len(pattern) <= _LONGEST_PATTERN}
    return [
        Rule(
            name=f"{NAME}_{crc32(pattern.encode()):08x}",
            pattern=pattern,
            severity=Severity.INFO,
            role=Role.PROGRESS,
            phase=Phase.TRAINING,
            shows=Shows.TRAINING,
        )
        for pattern in sorted(patterns)[:_FORMS]
    ]


def _kind(part: re.Match[str]) -> str:
    return {"number": "0", "clock": "T", "level": "L"}.get(part.lastgroup or "", "")


def _counter(lines: Sequence[_Counted]) -> tuple[int, ...]:
    """The places of the number that rises, or of the epoch and the batch; () if the lines count nothing."""
    if len(lines) < _LEAST or not _measured(lines):
        return ()
    whole = [
        place
        for place in range(len(lines[-1].numbers))
        if all(each.numbers[place].isdecimal() for each in lines) and not _is_of_a_list(lines[-1].own, place)
    ]
    places = [(place,) for place in whole] + list(pairwise(whole))
    return next((place for place in places if _rises(lines, place)), ())


def _is_of_a_list(own: str, place: int) -> bool:
    starts = [part.start() for part in _PARTS.finditer(own) if part.lastgroup == "number"]
    return _OF_A_LIST.search(own[: starts[place]]) is not None


def _rises(lines: Sequence[_Counted], places: tuple[int, ...]) -> bool:
    counts = [tuple(int(line.numbers[place]) for place in places) for line in lines]
    falls = sum(1 for one, other in pairwise(counts) if other < one)
    return len(set(counts)) >= _LEAST and 8 * falls <= len(counts)


def _measured(lines: Sequence[_Counted]) -> bool:
    columns = zip(*(line.numbers for line in lines), strict=True)
    return any(len(set(column)) >= _LEAST and any("." in each for each in column) for column in columns)


def _pattern(own: str, places: tuple[int, ...]) -> str:
    names = ("count",) if len(places) == 1 else ("epoch", "batch")
    pieces, at, number = list[str](), 0, 0
    for part in _PARTS.finditer(own):
        pieces.append(_literal(own[at : part.start()]))
        kind, at = part.lastgroup or "", part.end()
        if kind == "number":
            named = number in places
            pieces.append(rf"(?P<{names[places.index(number)]}>\d+)" if named else _AS[kind])
            number += 1
        else:
            pieces.append(_AS[kind])
    return "".join([*pieces, _literal(own[at:]), r"\s*$"])


def _literal(text: str) -> str:
    shown = (char if char.isascii() and char.isprintable() else "" for char in text)
    return "".join(char if char.isalnum() else f"\\{char}" if char else "." for char in shown)
