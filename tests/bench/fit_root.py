"""Compare the order of root lines by hand with fitted weights on labelled logs: `make fit-diagnosis`.

Reads the labelled logs of a folder and judges each as `midwatch replay` does. Writes a section of
`bench/results/diagnosis.md`, with names and counts and no text of a log. It ships no weights.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import msgspec

from bench.fit_root_report import Comparison, page_with
from bench.pairwise import Pair, fitted, pairs_of, score
from bench.root_features import Numbers, numbers_of
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.detect.diagnosis.candidates import RootCandidate
from midwatch.agents.detect.diagnosis.root_line import Order
from midwatch.agents.detect.diagnosis.verdict import AttemptEnd, diagnose
from midwatch.agents.detect.incident import settling
from midwatch.agents.detect.line_order import in_order
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile, as_printed
from midwatch.agents.replay.scoring import Labelled, Prediction, read_labelled, root_named
from midwatch.agents.rulesets.bundles import CompiledBundle, watched_rules
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Hit, Verdict

BATCHES = ("dev", "batch-1", "batch-2", "batch-3")
FIRST = ("dev", "batch-1")
PENALTIES = (1.0, 3.0, 10.0)
PAGE = Path("bench/results/diagnosis.md")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+(?=[ #])")

Weights = Mapping[str, float]


@dataclass(frozen=True)
class FailureCase:
    """A labelled failure, with what the diagnosis saw. `found`: the verdict of the whole replay."""

    batch: str
    repository: str
    row: Labelled
    hits: tuple[Hit, ...]
    ending: AttemptEnd | None
    found: Verdict

    @cached_property
    def by_hand(self) -> bool:
        """Whether the order by hand names the right line."""
        return self._is_right(self.found)

    @cached_property
    def _candidates(self) -> tuple[RootCandidate, ...]:
        """The candidates that no other line sets aside."""
        seen: list[RootCandidate] = []

        def look(candidate: RootCandidate) -> tuple[Any, ...]:
            if not candidate.set_aside:
                seen.append(candidate)
            return in_order(candidate.hit)

        if self.ending is not None:
            diagnose(self.hits, self.ending, look)
        return tuple(seen)

    @cached_property
    def _numbers(self) -> dict[tuple[object, ...], Numbers]:
        if self.ending is None:
            return {}
        numbers = numbers_of(self._candidates, self.ending)
        return {_key(each): known for each, known in zip(self._candidates, numbers, strict=True)}

    @cached_property
    def pairs(self) -> list[Pair]:
        """Each right candidate against each wrong one; nothing where all or none are right."""
        right = [self._numbers[_key(each)] for each in self._candidates if self._holds(each.hit)]
        wrong = [self._numbers[_key(each)] for each in self._candidates if not self._holds(each.hit)]
        return pairs_of(right, wrong) if right and wrong else []

    def by_weights(self, weights: Weights) -> bool:
        """Whether the order of these weights names the right line."""

        def order(candidate: RootCandidate) -> tuple[Any, ...]:
            known = self._numbers.get(_key(candidate), {})
            return -score(weights, known), in_order(candidate.hit)

        return self._by(order)

    @cached_property
    def by_place(self) -> bool:
        """Whether the earliest candidate is the right line."""
        return self._by(lambda candidate: in_order(candidate.hit))

    def _by(self, order: Order) -> bool:
        """Whether another order names the right line. The rest of the diagnosis stays."""
        if self.ending is None or not self._numbers:
            return self.by_hand
        usual = diagnose(self.hits, self.ending).verdict
        if (usual.root_line_number, usual.state) != (self.found.root_line_number, self.found.state):
            return self.by_hand  # what the replay adds decided, not the order
        return self._is_right(diagnose(self.hits, self.ending, order).verdict)

    def _holds(self, hit: Hit) -> bool:
        text = as_printed(self._file, hit.line.number, hit.line.text)
        return root_named(self.row, Prediction(hit.error_type, text))

    def _is_right(self, verdict: Verdict) -> bool:
        if verdict.state != "failed":
            return False
        number, text = verdict.root_line_number, verdict.root_line
        shown = text if number is None else as_printed(self._file, number, text)
        return root_named(self.row, Prediction(verdict.error_type, shown))

    @cached_property
    def _file(self) -> LogFile:
        return LogFile("log", self.row.log.encode(), 0.0)


def _key(candidate: RootCandidate) -> tuple[object, ...]:
    hit = candidate.hit
    return hit.line.file, hit.line.number, hit.rule, hit.role, hit.fallback


def read_cases(folder: Path, *, scan: bool = True) -> list[FailureCase]:
    """All labelled failures of the folder, each judged once. `scan`: as of `watched_rules`."""
    watched, policy = watched_rules(("default",), scan=scan), load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    return [
        _case(batch, repository, row, watched, book)
        for batch in BATCHES
        for row, repository in _rows(folder / f"{batch}.jsonl")
        if row.failed
    ]


def _rows(file: Path) -> Iterable[tuple[Labelled, str]]:
    plain = [msgspec.json.decode(line) for line in file.read_bytes().splitlines() if line.strip()]
    rows = read_labelled(enumerate(plain, 1), str(file))
    for row, each in zip(rows, plain, strict=True):
        named = _REPOSITORY.match(each["source"])
        yield row, named[0].lower() if named else each["thread"]


def _case(batch: str, repository: str, row: Labelled, watched: CompiledBundle, book: Rulebook) -> FailureCase:
    files = [LogFile("log", row.log.encode(), 0.0)]
    with patch.object(settling, "diagnose", wraps=diagnose) as seen:
        found = replay("replay:file/log", files, watched, book, WatchLimits()).verdict
    if seen.call_args is None:
        return FailureCase(batch, repository, row, (), None, found)
    hits, ending = seen.call_args.args[:2]
    return FailureCase(batch, repository, row, tuple(hits), ending, found)


def without_each(cases: Sequence[FailureCase], penalty: float) -> dict[str, Weights]:
    """The weights for each repository, fitted on all others."""
    everything = [pair for case in cases for pair in case.pairs]
    whole: Weights | None = None
    found: dict[str, Weights] = {}
    for repository in sorted({case.repository for case in cases}):
        others = [pair for case in cases if case.repository != repository for pair in case.pairs]
        if len(others) == len(everything):
            whole = whole or fitted(everything, penalty)
            found[repository] = whole
        else:
            found[repository] = fitted(others, penalty)
    return found


def best_penalty(cases: Sequence[FailureCase]) -> float:
    """The penalty with the most right lines on the first batches, each repository by the others."""
    first = [case for case in cases if case.batch in FIRST]
    rights = {}
    for penalty in PENALTIES:
        weights = without_each(first, penalty)
        rights[penalty] = sum(case.by_weights(weights[case.repository]) for case in first)
    return max(PENALTIES, key=lambda penalty: (rights[penalty], penalty))


def compare(cases: Sequence[FailureCase]) -> list[Comparison]:
    """One row for each batch and for all.

    Held out: each repository is judged by weights of all others. Transferred: by those of the first batches.
    """
    penalty = best_penalty(cases)
    whole = fitted([pair for case in cases for pair in case.pairs], penalty)
    first = fitted([pair for case in cases if case.batch in FIRST for pair in case.pairs], penalty)
    held_out = without_each(cases, penalty)
    groups = {name: [case for case in cases if case.batch == name] for name in BATCHES}
    groups["batches 2 and 3"] = [case for case in cases if case.batch not in FIRST]
    groups["all"] = list(cases)
    groups["all, several candidates"] = [case for case in cases if case.pairs]
    found = []
    for name, group in groups.items():
        unseen = [case.by_weights(held_out[case.repository]) for case in group]
        later = not any(case.batch in FIRST for case in group)
        found.append(
            Comparison(
                name=name.replace("-", " "),
                of=len(group),
                by_place=sum(case.by_place for case in group),
                by_hand=sum(case.by_hand for case in group),
                in_sample=sum(case.by_weights(whole) for case in group),
                held_out=sum(unseen),
                only_by_hand=sum(case.by_hand > right for case, right in zip(group, unseen, strict=True)),
                transferred=sum(case.by_weights(first) for case in group) if later else None,
                penalty=penalty,
                weights=len(whole),
                repositories=len({case.repository for case in group}),
            )
        )
    return found


def main() -> None:
    """Print the comparison and write its section."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/failures")
    missing = [batch for batch in BATCHES if not (folder / f"{batch}.jsonl").is_file()]
    if missing:
        names = ", ".join(f"{name}.jsonl" for name in missing)
        sys.exit(
            f"{folder} lacks {names}: midwatch does not hold the labelled logs; LABELS=FOLDER names them"
        )
    rows = compare(read_cases(folder))
    page = page_with(PAGE.read_text(encoding="utf-8"), rows)
    PAGE.write_text(page, encoding="utf-8")
    for row in rows:
        print(row)


if __name__ == "__main__":
    main()
