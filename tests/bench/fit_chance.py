"""Count the labelled ends by class, and measure the chance that comes of them: `make fit-diagnosis`.

Reads the labelled logs of a folder, judges each as `midwatch replay` does, and writes
`labelled_ends.json` into the product and a section of `bench/results/diagnosis.md`. Both hold names and
counts, and no text of a log.

The section is about three ways of testing: counts of the batches read first, tested on those read later; each
repository by the counts of all others; and what the policies would have cost.
"""

from __future__ import annotations

import argparse
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from bench.chance_costs import CostedLog, cost_table
from bench.chance_plot import plot
from bench.chance_report import ChanceTest, Scored, section, with_section
from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.detect.diagnosis import chance
from midwatch.agents.detect.diagnosis.chance import Counted, EndClass, chance_of, counted
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.job_replay import replay
from midwatch.agents.replay.reading.log_files import LogFile
from midwatch.agents.replay.scoring import Labelled, read_labelled
from midwatch.agents.rulesets.bundles import CompiledBundle, watched_rules
from midwatch.agents.rulesets.outcomes import Counts, counts_text
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import Verdict

BATCHES = ("dev", "batch-1", "batch-2", "batch-3")
FIRST = ("dev", "batch-1")
FILE = Path(chance.__file__).with_name(chance.FILE)
PAGE = Path("bench/results/diagnosis.md")
PLOT = Path("bench/results/chance.svg")
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+(?=[ #])")


@dataclass(frozen=True, slots=True)
class JudgedLog:
    """One labelled log and the verdict on it. `group` is the repository that it comes from."""

    batch: str
    group: str
    row: Labelled
    verdict: Verdict

    @property
    def end(self) -> EndClass | None:
        """The class of the end; None if the diagnosis names no failure."""
        found = self.verdict.chance
        if not found:
            return None
        return EndClass(self.verdict.error_type, self.verdict.transient, found.stepped)

    @property
    def worth(self) -> bool:
        """Whether the label calls for a restart. An action that is as right does not count."""
        return self.row.right_action == "restart"

    @property
    def on_the_border(self) -> bool:
        """Whether the label takes another action as equally right."""
        return bool(self.row.also_action)


def read_and_judge(folder: Path, batches: Iterable[str] = BATCHES) -> list[JudgedLog]:
    """Every log of the batches with the verdict on it."""
    watched, policy = watched_rules(("default",)), load_policy("verdict")
    book = Rulebook({policy.name: policy}, sign=lambda command: command, default_policy=policy.name)
    return [
        JudgedLog(batch, group, row, _verdict(row, watched, book))
        for batch in batches
        for row, group in _rows(folder / f"{batch}.jsonl")
    ]


def _rows(file: Path) -> list[tuple[Labelled, str]]:
    plain = [msgspec.json.decode(line) for line in file.read_bytes().splitlines() if line.strip()]
    rows = read_labelled(enumerate(plain, 1), str(file))
    return [(row, _group(each)) for row, each in zip(rows, plain, strict=True)]


def _group(row: dict[str, str]) -> str:
    """The repository; the thread where the source names none."""
    named = _REPOSITORY.match(row["source"])
    return named[0] if named else row["thread"]


def _verdict(row: Labelled, watched: CompiledBundle, book: Rulebook) -> Verdict:
    files = [LogFile("log", row.log.encode(), 0.0)]
    return replay("replay:file/log", files, watched, book, WatchLimits()).verdict


def counts_of(logs: Iterable[JudgedLog]) -> Counts:
    """The labelled ends by class: how many were judged worth a restart, and how many there are."""
    found: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for log in logs:
        if log.end is not None:
            worth, of = found[log.end.name]
            found[log.end.name] = (worth + log.worth, of + 1)
    return dict(sorted(found.items()))


def shares(logs: Iterable[JudgedLog], counts: Sequence[Counted]) -> list[Scored]:
    """Each end with its chance by these counts."""
    return [
        Scored(chance_of(log.end, counts).share, log.worth, log.on_the_border)
        for log in logs
        if log.end is not None
    ]


def each_without_its_group(logs: Sequence[JudgedLog]) -> list[Scored]:
    """Each end with its chance by the counts of all other repositories."""
    groups = sorted({log.group for log in logs})
    return [
        scored
        for group in groups
        for scored in shares(
            [log for log in logs if log.group == group],
            counted(counts_of(log for log in logs if log.group != group)),
        )
    ]


def tests_of(logs: Sequence[JudgedLog]) -> list[ChanceTest]:
    """The chance tested on logs that its counts do not hold."""
    first = [log for log in logs if log.batch in FIRST]
    counts = counted(counts_of(first))
    later = {name: [log for log in logs if log.batch == name] for name in BATCHES if name not in FIRST}
    usual = _usual(first)
    found = [ChanceTest(name.replace("-", " "), shares(each, counts), usual) for name, each in later.items()]
    both = [log for each in later.values() for log in each]
    found.append(ChanceTest("batches 2 and 3", shares(both, counts), usual))
    return [*found, ChanceTest("each repository by the others", each_without_its_group(logs), _usual(logs))]


def costed(logs: Sequence[JudgedLog]) -> list[CostedLog]:
    """Each log with its verdict, whose chance rests on the other repositories."""
    found = []
    for group in sorted({log.group for log in logs}):
        others = counted(counts_of(log for log in logs if log.group != group))
        for log in (log for log in logs if log.group == group):
            known = replace(log.verdict, chance=chance_of(log.end, others)) if log.end else log.verdict
            found.append(CostedLog(log.row, known))
    return found


def _usual(logs: Iterable[JudgedLog]) -> float:
    ends = [log for log in logs if log.end is not None]
    return sum(log.worth for log in ends) / len(ends)


def main() -> None:
    """Write the counts and the section."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with dev.jsonl and batch-1.jsonl to batch-3.jsonl")
    folder = parser.parse_args().folder
    logs = read_and_judge(folder)
    counts = counts_of(logs)
    FILE.write_text(counts_text(counts), encoding="utf-8")
    tests = tests_of(logs)
    PLOT.write_text(plot(tests[-2:]), encoding="utf-8")
    text = section(tests, "\n".join(cost_table(costed(logs))))
    PAGE.write_text(with_section(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    print(f"{FILE.name}: {sum(of for _, of in counts.values())} ends in {len(counts)} classes")
    for test in tests:
        about = f"{test.name}: {len(test.scored)} ends, Brier {test.brier:.3f}"
        print(f"{about}, the usual share {test.usual_brier:.3f}")


if __name__ == "__main__":
    main()
