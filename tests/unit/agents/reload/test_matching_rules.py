"""Rules are swapped in one step, at once; what makes them fast follows, and never brings older ones back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from midwatch.agents.reload import matching_rules
from midwatch.agents.reload.aside import Aside
from midwatch.agents.reload.content import Content, bundle, bundle_hash, content
from midwatch.agents.reload.kept_choices import KeptChoices
from midwatch.agents.reload.matching_rules import MatchingRules
from midwatch.rules.compiler import RuleSet
from midwatch.rules.learning import FIRST_LOOK
from midwatch.rules.model import Rule
from midwatch.streams.errors import NewerRecord
from processes import alive, wait_for

TEXT = b"the mesh of racks was lost\nall is well\n"


def _content(name: str, pattern: str = "mesh of racks") -> Content:
    rule = Rule(name=name, pattern=pattern, error_type="communication")
    record = bundle((rule,), {}, (), {}, any_line=False)
    return content(bundle_hash(record), record)


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[MatchingRules]:
    monkeypatch.setattr(matching_rules, "_QUIET_S", 0.01)
    made = MatchingRules(_content("a"), KeptChoices(tmp_path))
    yield made
    made.stop()


def _found(rules: RuleSet) -> list[str]:
    return [hit.rule.name for hit in rules.match_chunk(TEXT)]


def test_a_bundle_is_matched_by_at_once_and_its_scan_follows(rules: MatchingRules) -> None:
    taken = _content("b")
    rules.take(taken)
    at_once = rules.watched
    assert (at_once.hash, _found(at_once.rules)) == (taken.hash, ["b"])
    assert at_once.rules.machinery.every_line
    wait_for(lambda: not rules.watched.rules.machinery.every_line, "the scan is there", 30)
    assert (rules.watched.hash, _found(rules.watched.rules)) == (taken.hash, ["b"])


def test_however_fast_bundles_follow_each_other_the_last_one_stays(rules: MatchingRules) -> None:
    contents = [_content(name) for name in ("b", "c")]
    for number in range(40):
        rules.take(contents[number % 2])
        assert rules.watched.hash == contents[number % 2].hash
    wait_for(lambda: not rules.watched.rules.machinery.every_line, "the scan is there", 30)
    assert _found(rules.watched.rules) == ["c"]


def test_literals_that_nobody_wants_any_more_are_not_chosen_to_the_end(
    rules: MatchingRules, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[Aside] = []

    class Slow(Aside):
        def ask(self, over: threading.Event, *_: object) -> Any:
            begun.append(self)
            return super().ask(over, time.sleep, 600)

    monkeypatch.setattr(matching_rules, "Aside", Slow)
    rules.take(_content("b"))
    wait_for(lambda: begun, "the choice has begun", 30)
    rules.take(_content("c"))
    wait_for(lambda: not alive(begun[0].pid), "it is given up", 30)
    wait_for(lambda: len(begun) == 2, "the next one has begun", 30)
    assert _found(rules.watched.rules) == ["c"]
    rules.stop()
    assert not alive(begun[1].pid)
    assert "slower" not in caplog.text


def test_what_was_chosen_once_is_not_chosen_again(rules: MatchingRules, tmp_path: Path) -> None:
    taken = _content("b")
    rules.take(taken)
    wait_for(lambda: not rules.watched.rules.machinery.every_line, "the scan is there", 30)
    again = MatchingRules(_content("a"), KeptChoices(tmp_path))
    try:
        again.take(taken)
        assert not again.watched.rules.machinery.every_line
        assert _found(again.watched.rules) == ["b"]
    finally:
        again.stop()


def test_rules_that_do_not_compile_here_leave_the_others_in_force(rules: MatchingRules) -> None:
    before = rules.watched
    with pytest.raises(NewerRecord, match="do not compile"):
        rules.take(_content("d", "("))
    assert rules.watched is before


def test_a_worker_learns_from_the_lines_that_it_is_given(rules: MatchingRules, tmp_path: Path) -> None:
    taken = _content("b", "mesh of .{1,20} was lost")
    rules.take(taken)
    wait_for(lambda: not rules.watched.rules.machinery.every_line, "the scan is there", 30)
    (before,) = rules.watched.rules.triggers.spellings
    common = b"all is well, and %b is a part of a common word\n" % before * (1 << 12)
    for _ in range(FIRST_LOOK // len(common) + 1):
        rules.heed(common)
    wait_for(lambda: before not in rules.watched.rules.triggers.spellings, "it looks for something else", 30)
    assert (rules.watched.hash, _found(rules.watched.rules)) == (taken.hash, ["b"])
    again = MatchingRules(taken, KeptChoices(tmp_path))
    again.stop()
    assert again.watched.rules.triggers == rules.watched.rules.triggers
