"""Admission: one dear rule is refused by name, the others come in."""

from __future__ import annotations

import time

import pytest

from midwatch.rules.admission import Speeds, admit, measured_by
from midwatch.rules.compiler import RuleSet
from midwatch.rules.model import Rule, SourceLocation


def rule(name: str, pattern: str = "x") -> Rule:
    location = SourceLocation("mine.yaml", 3, 5)
    return Rule(name=name, pattern=pattern, error_type="oom", location=location)


def speed_by_name(rule_set: RuleSet) -> Speeds:
    """A machine on which a rule named dear costs nine tenths of the speed, one named heavy a third."""
    speed = 1000.0
    for each in rule_set.rules:
        speed *= 0.1 if each.name.startswith("dear") else 0.67 if each.name.startswith("heavy") else 1.0
    return {"progress": 200.0, "noise": speed}


def test_the_dear_rule_alone_is_refused_with_its_place_its_cost_and_the_remedy() -> None:
    candidates = [rule("a"), rule("dear", r"\d.{30,90}NCCL"), rule("b"), rule("c")]
    admission = admit([rule("base")], candidates, speed_by_name)
    assert [each.name for each in admission.admitted] == ["a", "b", "c"]
    (refusal,) = admission.refused
    assert str(refusal.error()) == (
        "mine.yaml:3:5: rule 'dear' slows all rules down: 100 MB/s on noise lines, 1000 without it\n"
        "  Replace counted repetitions such as `.{10,90}` by `.*`, or anchor the pattern with `^`."
    )


def test_rules_that_are_dear_only_together_come_in_as_far_as_they_fit() -> None:
    admission = admit([rule("base")], [rule(f"heavy{i}") for i in range(8)], speed_by_name)
    assert admission.admitted[0].name == "heavy0"
    assert admission.refused != ()
    assert admission.speeds["noise"] >= 50.0


def test_a_slow_machine_refuses_nothing_for_its_own_slowness() -> None:
    def slow(rule_set: RuleSet) -> Speeds:
        return {"noise": 20.0 - 0.1 * len(rule_set.rules)}

    assert admit([rule("base")], [rule("a"), rule("b")], slow).refused == ()


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [(r"\d+ \w+ \d+", "three or more fixed characters"), ("NCCL", "longer or rarer")],
)
def test_the_advice_fits_the_pattern(pattern: str, advice: str) -> None:
    admission = admit([rule("base")], [rule("dear", pattern)], speed_by_name)
    assert advice in str(admission.refused[0].error())


def test_a_real_measurement_gives_each_workload_a_speed() -> None:
    admission = admit(
        [rule("base", "out of memory")], [rule("a", "disk is full")], measured_by(time.thread_time)
    )
    assert set(admission.speeds) == {"progress", "noise", "storm"}
    assert all(speed > 0 for speed in admission.speeds.values())
