"""Admission: one slow rule is refused by name, the others come in."""

from __future__ import annotations

import time

import pytest

from midwatch.rules.matching.admission import Speeds, admit, measured_by
from midwatch.rules.matching.compiler import RuleSet
from midwatch.rules.model import BlockKind, Rule, SourceLocation


def rule(name: str, pattern: str = "x") -> Rule:
    location = SourceLocation("mine.yaml", 3, 5)
    return Rule(name=name, pattern=pattern, error_type="oom", location=location)


def speed_by_name(rule_set: RuleSet) -> Speeds:
    """A machine on which a rule named slow costs nine tenths of the speed, one named heavy a third."""
    speed = 1000.0
    for each in rule_set.rules:
        speed *= 0.1 if each.name.startswith("slow") else 0.67 if each.name.startswith("heavy") else 1.0
    return {"progress": 200.0, "noise": speed}


def test_the_slow_rule_alone_is_refused_with_its_place_its_cost_and_the_remedy() -> None:
    candidates = [rule("a"), rule("slow", r"\d.{30,90}NCCL"), rule("b"), rule("c")]
    admission = admit([rule("base")], candidates, speed_by_name)
    assert [each.name for each in admission.admitted] == ["a", "b", "c"]
    (refusal,) = admission.refused
    assert str(refusal.error()) == (
        "mine.yaml:3:5: rule 'slow' slows all rules down: 100 MB/s on noise lines, 1000 without it\n"
        "  Replace counted repetitions such as `.{10,90}` by `.*`, or anchor the pattern with `^`."
    )


def test_rules_that_are_slow_only_together_come_in_as_far_as_they_fit() -> None:
    admission = admit([rule("base")], [rule(f"heavy{i}") for i in range(8)], speed_by_name)
    assert admission.admitted[0].name == "heavy0"
    assert admission.refused != ()
    assert admission.speeds["noise"] >= 50.0


def test_a_slow_machine_refuses_nothing_for_its_own_slowness() -> None:
    def slow(rule_set: RuleSet) -> Speeds:
        return {"noise": 20.0 - 0.1 * len(rule_set.rules)}

    assert admit([rule("base")], [rule("a"), rule("b")], slow).refused == ()


def test_a_rule_is_not_refused_because_the_machine_was_busy_while_it_was_measured() -> None:
    """Other work slows the second to the fourth measurement down, whatever is measured."""
    speeds = iter([1000.0, 300.0, 300.0, 400.0])
    admission = admit([rule("base")], [rule("a")], lambda _: {"noise": next(speeds, 900.0)})
    assert [each.name for each in admission.admitted] == ["a"]
    assert admission.refused == ()


def test_a_rule_that_stays_slow_is_refused_however_often_it_is_measured() -> None:
    def steady(rule_set: RuleSet) -> Speeds:
        return {"noise": 1000.0 if len(rule_set.rules) == 1 else 450.0}

    admission = admit([rule("base")], [rule("a")], steady)
    assert [(each.rule.name, each.speed, each.speed_without) for each in admission.refused] == [
        ("a", 450.0, 1000.0)
    ]


@pytest.mark.parametrize(
    ("slow", "advice"),
    [
        pytest.param(r"\d.{30,90}NCCL", "counted repetitions", id="the automaton thrashes"),
        pytest.param(r"\w+ \w+: \w+", "longer or rarer", id="only common literals"),
        pytest.param(r"[0-9a-f]+ [0-9a-f]+", "three or more fixed", id="no literal"),
        pytest.param(r"INFO.{20,60}[0-9].{20,60}x", "counted repetitions", id="a huge program"),
    ],
)
def test_a_truly_slow_rule_is_refused_on_this_machine_and_a_good_one_beside_it_is_not(
    slow: str, advice: str
) -> None:
    base = [rule("base", "CUDA out of memory"), rule("other", "Watchdog caught")]
    candidates = [rule("good", "the disk is full"), rule("slow", slow)]
    admission = admit(base, candidates, measured_by(time.thread_time))
    assert [each.name for each in admission.admitted] == ["good"]
    (refusal,) = admission.refused
    assert refusal.speed < refusal.speed_without
    assert str(refusal.error()).startswith("mine.yaml:3:5: rule 'slow' slows all rules down: ")
    assert advice in str(refusal.error())


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [(r"\d+ \w+ \d+", "three or more fixed characters"), ("NCCL", "longer or rarer")],
)
def test_the_advice_fits_the_pattern(pattern: str, advice: str) -> None:
    admission = admit([rule("base")], [rule("slow", pattern)], speed_by_name)
    assert advice in str(admission.refused[0].error())


def test_a_real_measurement_gives_each_workload_a_speed() -> None:
    admission = admit(
        [rule("base", "out of memory")], [rule("a", "disk is full")], measured_by(time.thread_time)
    )
    assert set(admission.speeds) == {"progress", "noise", "storm"}
    assert all(speed > 0 for speed in admission.speeds.values())


@pytest.mark.parametrize("method", ["match_blocks", "match_stops"])
def test_what_blocks_and_stop_patterns_cost_is_measured_too(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock that only they make go on."""
    now = [0.0]
    original = getattr(RuleSet, method)

    def match(self: RuleSet, text: bytes) -> object:
        now[0] += 1.0 if any(each.block or each.stop_pattern for each in self.rules) else 0.001
        return original(self, text)

    monkeypatch.setattr(RuleSet, method, match)
    slow = Rule(
        name="slow",
        pattern="x",
        error_type="oom",
        block=BlockKind.TRACEBACK if method == "match_blocks" else None,
        stop_pattern="over" if method == "match_stops" else "",
    )
    admission = admit([rule("base")], [rule("a"), slow], measured_by(lambda: now[0]))
    assert [refusal.rule.name for refusal in admission.refused] == ["slow"]
    assert [each.name for each in admission.admitted] == ["a"]
