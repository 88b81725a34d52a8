"""What is left of the verdicts where rules are missing: `python -m bench.unknown_words FOLDER`.

A log that nobody has seen holds words that no rule knows. So each labelled failure of the folder is judged
again without the rules that know its words, in two ways:

- Without the specific rules that fire on its root line, whatever else they find.
- Without all rules that fire in no other repository's logs. What is general stays.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from bench.prefixes import FILES
from midwatch.agents.cli.rules.score import prediction_of, replay_of_logs
from midwatch.agents.replay import scoring
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.scoring import Judged, Labelled
from midwatch.agents.rulesets.bundles import CompiledBundle, combined
from midwatch.rules.loader import load_bundle
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.model import Rule

MEASURES = ("detected", "family", "root line", "family of cascades", "root line of cascades")

Watch = Callable[[str], Replayed]
_REPOSITORY = re.compile(r"[\w.-]+/[\w.-]+")


def main() -> None:
    """Judge all logs with all rules and without those that know them, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--output", type=Path, default=Path("bench/results/unknown-words.md"))
    arguments = parser.parse_args()
    logs = [pair for name in FILES for pair in _logs(arguments.folder / name)]
    rules = combined([load_bundle("default")])
    watch = _watch(rules)
    whole = {row.id: watch(row.log) for _, row in logs}
    arguments.output.write_text("\n".join([*_page(logs, rules, whole), ""]), encoding="utf-8")


def _logs(path: Path) -> Iterator[tuple[str, Labelled]]:
    """Each labelled log with its repository."""
    lines = path.read_text(encoding="utf-8").split("\n")
    rows = [(number, json.loads(line)) for number, line in enumerate(lines, 1) if line.strip()]
    for (_, row), labelled in zip(rows, scoring.read_labelled(iter(rows), str(path)), strict=True):
        source = str(row["source"])
        found = _REPOSITORY.search(source)
        yield (found[0] if found else source).lower(), labelled


def _watch(rules: Sequence[Rule]) -> Watch:
    return replay_of_logs(CompiledBundle(compile_rules(tuple(rules), scan=False), "bench"))


def _page(
    logs: Sequence[tuple[str, Labelled]], rules: Sequence[Rule], whole: Mapping[str, Replayed]
) -> Iterator[str]:
    yield "# Verdicts on words that no rule knows\n"
    yield f"{datetime.now(UTC).date()}; {len(logs)} labelled logs, {len(rules)} rules. Each failure is judged"
    yield "again without rules that know its words, as an unseen log would be. Labels with equally right"
    yield "answers count as in `midwatch rules score --lenient`. Written by `make bench-unknown-words"
    yield "LABELS=FOLDER`.\n"
    yield from _table(
        "Without the specific rules of the root line. Only failures whose root line has one",
        _without_the_rule_of_the_root(logs, rules, whole),
    )
    yield from _table(
        "Without the rules that fire in no other repository's logs. All logs",
        _without_the_repository(logs, rules, whole),
    )


def _table(title: str, pairs: Sequence[tuple[Judged, Judged]]) -> Iterator[str]:
    known = scoring.measure(scoring.leniently(before for before, _ in pairs))
    left = scoring.measure(scoring.leniently(after for _, after in pairs))
    yield f"## {title}\n"
    yield "| | with all rules | without |\n|---|---|---|"
    for name in (*MEASURES, "false alarms", "restart recall", "wrong restarts of lasting failures"):
        yield f"| {name} | {known[name]} | {left[name]} |"
    yield ""


def _without_the_rule_of_the_root(
    logs: Sequence[tuple[str, Labelled]], rules: Sequence[Rule], whole: Mapping[str, Replayed]
) -> list[tuple[Judged, Judged]]:
    specific = {rule.name for rule in rules if not rule.fallback}
    pairs = []
    for _, row in logs:
        done = whole[row.id]
        if not row.failed or done.verdict.state != "failed":
            continue
        root = done.verdict.root_line.strip()
        missing = {
            hit.rule
            for hit in done.hits
            if hit.role in ("cause", "consequence") and hit.line.text.strip() == root
        } & specific
        if missing:
            watch = _watch([rule for rule in rules if rule.name not in missing])
            pairs.append(((row, prediction_of(done)), (row, prediction_of(watch(row.log)))))
    return pairs


def _without_the_repository(
    logs: Sequence[tuple[str, Labelled]], rules: Sequence[Rule], whole: Mapping[str, Replayed]
) -> list[tuple[Judged, Judged]]:
    fires: dict[str, set[str]] = defaultdict(set)
    for repository, row in logs:
        for hit in whole[row.id].hits:
            fires[hit.rule].add(repository)
    own: dict[str, set[str]] = defaultdict(set)
    for name, repositories in fires.items():
        if len(repositories) == 1:
            own[next(iter(repositories))].add(name)
    watches = {
        repository: _watch([rule for rule in rules if rule.name not in missing])
        for repository, missing in own.items()
    }
    return [
        (
            (row, before := prediction_of(whole[row.id])),
            (row, prediction_of(watches[repository](row.log)) if repository in watches else before),
        )
        for repository, row in logs
    ]


if __name__ == "__main__":
    main()
