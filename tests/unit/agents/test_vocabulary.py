"""What the libraries, the driver, the kernel and the schedulers print, line by line: the watch takes each of
these lines, alone in a log, for what it is. The tables beside this file hold them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from midwatch.agents.detect.diagnosis.root_line import root_of
from midwatch.agents.match.chunk_hits import match
from midwatch.agents.replay.reading.log_files import LogFile, chunks
from midwatch.agents.rulesets.bundles import watched_rules
from midwatch.rules.matching.compiler import RuleSet
from midwatch.rules.model import Role
from midwatch.streams.records import Hit

TABLES = sorted(Path(__file__).with_name("vocabulary").glob("*.tsv"))
TRANSIENT = {"y": True, "n": False}


@dataclass(frozen=True, slots=True)
class Entry:
    """One row: what a line must be taken for."""

    error_types: frozenset[str]
    roles: str
    transient: bool | None
    line: str


@pytest.fixture(scope="module")
def rule_set() -> RuleSet:
    return watched_rules(("default",), scan=False).rules


def entries(table: Path) -> Iterator[Entry]:
    for row in table.read_text(encoding="utf-8").split("\n"):
        if row and not row.startswith("#"):
            types, roles, transient, line = row.split("\t", 3)
            known = frozenset(types.split("|")) - {"-"}
            yield Entry(known, roles, TRANSIENT.get(transient), line)


def seen(rule_set: RuleSet, line: str) -> tuple[list[Hit], bool]:
    """The hits that the watch keeps, and whether the line is progress or success."""
    hits: list[Hit] = []
    goes_on = False
    for chunk in chunks("replay:file/line", LogFile("line", line.encode() + b"\n", 0.0), 0):
        found = match(chunk, rule_set, "", 0)
        if found is not None:
            hits += found.hits
            goes_on |= bool(found.progress)
    return hits, goes_on or any(hit.role == "success" for hit in hits)


def mistake(rule_set: RuleSet, entry: Entry) -> str:
    """What is wrong with how the line is taken; empty where nothing is."""
    hits, goes_on = seen(rule_set, entry.line)
    root = root_of(hits)
    if root is None:
        got = "P" if goes_on else "X" if hits else "B"
        if got in entry.roles or "B" in entry.roles:
            told = {hit.error_type for hit in hits}
            strange = got == "X" and "B" not in entry.roles and entry.error_types
            return f"context of {told}" if strange and not told & entry.error_types else ""
        return f"taken for {got}"
    if {"cause": "C", "consequence": "Q"}[root.role] not in entry.roles:
        return f"{root.role} by {root.rule}"
    if entry.error_types and root.error_type not in entry.error_types:
        return f"{root.error_type} by {root.rule}"
    if entry.transient is not None and root.transient is not entry.transient:
        return f"transient {root.transient} by {root.rule}"
    return ""


@pytest.mark.parametrize("table", TABLES, ids=[table.stem for table in TABLES])
def test_every_line_is_taken_for_what_it_is(rule_set: RuleSet, table: Path) -> None:
    told = ((entry, mistake(rule_set, entry)) for entry in entries(table))
    assert [(entry.line, wrong) for entry, wrong in told if wrong] == []


def test_no_other_rule_hides_a_failure_that_a_rule_gives_as_its_example(rule_set: RuleSet) -> None:
    """A context rule that is no fallback silences the fallbacks of its line, so both may not want it."""
    failures = [rule for rule in rule_set.rules if rule.role in (Role.CAUSE, Role.CONSEQUENCE)]
    examples = [(rule.name, example) for rule in failures for example in rule.match]
    hidden = [
        (name, example)
        for name, example in examples
        if not any(hit.role != "context" or hit.rule == name for hit in seen(rule_set, example)[0])
    ]
    assert len(failures) > 500
    assert hidden == []
