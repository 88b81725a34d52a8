"""Rules are swapped in one step, at once; a scan for much text follows, and never brings older rules back."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from midwatch.agents.rulesets.content import Content, bundle, bundle_hash, content
from midwatch.agents.rulesets.reload import matching_rules
from midwatch.agents.rulesets.reload.helper_process import HelperProcess
from midwatch.agents.rulesets.reload.matching_rules import PLAN_AFTER, MatchingRules
from midwatch.rules.matching import compiler
from midwatch.rules.matching.compiler import RuleSet
from midwatch.rules.matching.rule_finder import FindRules, rule_finder
from midwatch.rules.model import Rule
from midwatch.streams.errors import NewerRecord
from processes import alive, wait_for

TEXT = b"the mesh of racks was lost\nall is well\n"


def _content(name: str, pattern: str = "mesh of racks") -> Content:
    rule = Rule(name=name, pattern=pattern, error_type="communication")
    record = bundle((rule,), {}, (), {}, any_line=False)
    return content(bundle_hash(record), record)


@pytest.fixture
def rules() -> Iterator[MatchingRules]:
    made = MatchingRules(_content("a"))
    yield made
    made.stop()


def _found(rules: RuleSet) -> list[str]:
    return [hit.rule.name for hit in rules.match_chunk(TEXT)]


def _scans(rules: MatchingRules) -> bool:
    return not rules.watched.rules.machinery.every_line


def test_a_bundle_is_matched_by_at_once_and_its_scan_follows_much_text(rules: MatchingRules) -> None:
    taken = _content("b")
    rules.take(taken)
    at_once = rules.watched_for(PLAN_AFTER - 1)
    assert (at_once.hash, _found(at_once.rules)) == (taken.hash, ["b"])
    assert at_once.rules.machinery.every_line
    rules.watched_for(1)
    wait_for(lambda: _scans(rules), "the scan is there", 30)
    assert (rules.watched.hash, _found(rules.watched.rules)) == (taken.hash, ["b"])


def test_text_that_other_rules_matched_does_not_count(
    rules: MatchingRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned: list[str] = []
    monkeypatch.setattr(rules, "_begin_plan", lambda watched: planned.append(watched.hash))
    rules.watched_for(PLAN_AFTER - 1)
    taken = _content("b")
    rules.take(taken)
    rules.watched_for(PLAN_AFTER - 1)
    assert not planned
    rules.watched_for(PLAN_AFTER)
    assert planned == [taken.hash]


def test_a_bundle_is_compiled_once_by_its_worker(
    rules: MatchingRules, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled: list[Sequence[str]] = []

    def counted(patterns: Sequence[str]) -> FindRules:
        compiled.append(patterns)
        return rule_finder(patterns)

    monkeypatch.setattr(compiler, "rule_finder", counted)
    rules.take(_content("b"))
    rules.watched_for(PLAN_AFTER)
    wait_for(lambda: _scans(rules), "the scan is there", 30)
    assert compiled == [["mesh of racks"]]


def test_however_fast_bundles_follow_each_other_the_last_one_stays(rules: MatchingRules) -> None:
    contents = [_content(name) for name in ("b", "c")]
    for number in range(40):
        rules.take(contents[number % 2])
        assert rules.watched_for(PLAN_AFTER).hash == contents[number % 2].hash
    wait_for(lambda: _scans(rules), "the scan is there", 30)
    assert _found(rules.watched.rules) == ["c"]


def test_a_plan_that_nobody_wants_any_more_is_given_up(
    rules: MatchingRules, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    begun: list[HelperProcess] = []

    class Slow(HelperProcess):
        def ask(self, over: threading.Event, *_: object) -> Any:
            begun.append(self)
            return super().ask(over, time.sleep, 600)

    monkeypatch.setattr(matching_rules, "HelperProcess", Slow)
    rules.take(_content("b"))
    rules.watched_for(PLAN_AFTER)
    wait_for(lambda: begun, "the plan has begun", 30)
    rules.take(_content("c"))
    wait_for(lambda: not alive(begun[0].pid), "it is given up", 30)
    rules.watched_for(PLAN_AFTER)
    wait_for(lambda: len(begun) == 2, "the next one has begun", 30)
    assert _found(rules.watched.rules) == ["c"]
    rules.stop()
    assert not alive(begun[1].pid)
    assert "slower" not in caplog.text


def test_a_plan_that_fails_leaves_the_rules_in_force_and_is_not_tried_again(
    rules: MatchingRules, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tried: list[int] = []

    class Failing(HelperProcess):
        def ask(self, over: threading.Event, *_: object) -> Any:
            tried.append(self.pid)
            return super().ask(over, divmod, 1, 0)

    monkeypatch.setattr(matching_rules, "HelperProcess", Failing)
    rules.watched_for(PLAN_AFTER)
    wait_for(lambda: "ZeroDivisionError" in caplog.text, "the failure is told", 30)
    rules.watched_for(PLAN_AFTER)
    rules.stop()
    assert len(tried) == 1
    assert _found(rules.watched.rules) == ["a"]


def test_rules_that_do_not_compile_here_leave_the_others_in_force(rules: MatchingRules) -> None:
    before = rules.watched
    with pytest.raises(NewerRecord, match="do not compile"):
        rules.take(_content("d", "("))
    assert rules.watched is before
