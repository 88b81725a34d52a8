"""A bundle by its hash: what counts, what does not, and who may read it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from midwatch.agents.policies.loader import load_policy, shipped_policies
from midwatch.agents.rulesets.content import bundle, bundle_hash, content
from midwatch.rules.loader import load_bundle
from midwatch.rules.model import Phase, Rule, SourceLocation
from midwatch.streams.errors import NewerRecord
from midwatch.streams.records import RuleBundle, codec

RULE = Rule(name="a", pattern="lost the mesh", error_type="comms", remedy="look at the switch")


def _record(*rules: Rule) -> RuleBundle:
    return bundle(rules, {Phase.TRAINING: 60.0}, (load_policy("verdict"),), {}, any_line=False)


def test_every_shipped_rule_and_policy_comes_back_as_it_was() -> None:
    shipped = load_bundle("default")
    policies = [load_policy(name) for name in shipped_policies()]
    record = bundle(shipped.rules, shipped.silence, policies, {"/p.yaml": "verdict"}, any_line=True)
    read = content(bundle_hash(record), codec.decode(codec.encode(record)))
    assert read.rules == shipped.rules
    assert read.any_line
    assert {name: read.policies[name] for name in shipped_policies()} == {p.name: p for p in policies}
    assert read.policies["/p.yaml"] == load_policy("verdict")


def test_where_a_rule_stands_does_not_count_and_what_it_says_does() -> None:
    elsewhere = replace(RULE, location=SourceLocation("/other/place.yaml", 9, 3))
    assert bundle_hash(_record(RULE)) == bundle_hash(_record(elsewhere))
    assert bundle_hash(_record(RULE)) != bundle_hash(_record(replace(RULE, remedy="nothing")))
    assert bundle_hash(_record(RULE)) != bundle_hash(_record(RULE, replace(RULE, name="b")))


@pytest.mark.parametrize(
    "change",
    [
        {"any_line": True},
        {"silence": {"training": 61.0}},
        {"policies": {}},
        {"policy_files": {"/p.yaml": "verdict"}},
        {"outcomes": {"oom/permanent/stepped": (0, 2)}},
    ],
)
def test_all_that_is_judged_by_counts(change: dict[str, object]) -> None:
    record = _record(RULE)
    assert bundle_hash(replace(record, **change)) != bundle_hash(record)  # type: ignore[arg-type]  # a test's own fields


def test_a_bundle_that_says_more_than_this_midwatch_understands_is_not_read_by_half() -> None:
    record = _record(RULE)
    newer = replace(record, rules=({**record.rules[0], "only_on_tuesdays": True},))
    with pytest.raises(NewerRecord, match="another hash"):
        content(bundle_hash(newer), newer)
    policies = {"verdict": record.policies["verdict"] + "on_tuesdays: true\n"}
    with pytest.raises(NewerRecord, match="upgrade"):
        content(bundle_hash(replace(record, policies=policies)), replace(record, policies=policies))


def test_what_stands_under_another_hash_is_not_believed() -> None:
    with pytest.raises(NewerRecord, match="another hash"):
        content(bundle_hash(_record(RULE)), _record(replace(RULE, pattern="x")))
