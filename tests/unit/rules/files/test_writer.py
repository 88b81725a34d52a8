"""What is written is read back as the same rules."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from midwatch.rules.bundle import read_bundle
from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.files.writer import rules_text, seconds_text
from midwatch.rules.loader import load_bundle, shipped_files
from midwatch.rules.model import Mode, Phase, RateLimit, Role, Rule, Severity, SourceLocation

FULL = Rule(
    name="full",
    pattern=r"it's (?P<a>\d+): \"x\" # no comment",
    error_type="oom",
    subsystem="on",
    severity=Severity.WARNING,
    role=Role.CONSEQUENCE,
    transient=False,
    captures={"a": "1e3"},
    remedy="one\ntwo: three",
    match=(r"it's 7: \"x\" # no comment".replace("\\", ""),),
    no_match=("- it's", "~", "null", ""),
    metadata={"a": [1, 2.5, None, True, {"b": "yes"}], "12": "0x10"},
    rate_limit=RateLimit(3, 0.5),
    stop_pattern="*is over"[1:],
    fallback=True,
    any_level=True,
    phase=Phase.CHECKPOINT,
    mode=Mode.STALL,
    source="tab\there",
)


def bare(rule: Rule) -> Rule:
    return replace(rule, location=SourceLocation("anywhere"))


def test_a_rule_with_every_key_comes_back() -> None:
    flags = {f.name: True for f in fields(Rule) if isinstance(f.default, bool)}
    rule = replace(FULL, **flags)  # type: ignore[arg-type]  # flags of the rule, whichever there are
    (read,) = read_rules({"x.yaml": rules_text([rule]).encode()})
    assert bare(read) == bare(rule)


@pytest.mark.parametrize("name", ["default", "megatron_production"])
def test_all_that_we_ship_comes_back(name: str) -> None:
    shipped = load_bundle(name)
    half = len(shipped.rules) // 2  # all of them would be more than one file may have
    first = rules_text(shipped.rules[:half])
    second = rules_text(
        shipped.rules[half:],
        include=["first"],
        silence=shipped.silence,
        description="all: of it",
        any_line=True,
    )
    read = read_bundle("written", {"first.yaml": first.encode(), "written.yaml": second.encode()})
    assert [bare(rule) for rule in read.rules] == [bare(rule) for rule in shipped.rules]
    assert (read.silence, read.any_line, read.description) == (shipped.silence, True, "all: of it")


def test_what_is_included_and_left_out_is_written_too() -> None:
    text = rules_text([], include=["megatron_basic"], exclude=["megatron_iteration"])
    names = {rule.name for rule in read_bundle("own", {**shipped_files(), "own.yaml": text.encode()}).rules}
    assert names == {r.name for r in load_bundle("megatron_basic").rules} - {"megatron_iteration"}


@pytest.mark.parametrize(
    ("seconds", "text"), [(1200, "1200s"), (0.5, "0.5s"), (1e6, "1000000s"), (0.0001, "0.001s")]
)
def test_durations_are_written_to_the_millisecond(seconds: float, text: str) -> None:
    assert seconds_text(seconds) == text
