"""Triggers: few, short, and enough to find every line that a rule can match."""

from __future__ import annotations

from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.loader import shipped_files
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.scanner import build_scanner
from midwatch.rules.model import Rule
from midwatch.rules.prefilter.triggers import choose_triggers


def test_patterns_share_triggers() -> None:
    triggers = choose_triggers([f"worker {word} died" for word in ("one", "two", "three")], b"")
    assert len(triggers.spellings) == 1


def test_what_is_common_in_the_background_is_avoided() -> None:
    (trigger,) = choose_triggers(["NCCL INFO broken pipe"], b"NCCL INFO all is well\n" * 1000).spellings
    assert trigger not in b"NCCL INFO all is well"


def test_literals_are_told_apart_by_what_follows_however_late() -> None:
    frames = b"Exception raised from checkTimeout\n" * 1000
    patterns = [r"Exception: .+", r"Exception \(either"]
    triggers = choose_triggers(patterns, frames + b"iteration: 5 (either way)\n" * 1000)
    assert not any(trigger in frames for trigger in triggers.spellings)


def test_patterns_without_literals_are_named() -> None:
    assert choose_triggers([r"\d+ \w+", "out of memory"], b"").unguarded == (0,)


def test_many_words_in_any_case_are_looked_for_in_lower_case() -> None:
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf")
    triggers = choose_triggers([f"(?i){word}" for word in words], b"")
    assert not triggers.spellings
    assert triggers.folded == set(range(len(words)))
    assert len(triggers.lowered) <= len(words)


def test_a_word_in_any_case_has_no_other_word_looked_for_in_lower_case() -> None:
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf")
    patterns = [*(f"(?i){word}" for word in words), "Lost", "(?:torch|Alpha) error"]
    triggers = choose_triggers(patterns, b"they lost some\n" * 1000)
    assert triggers.folded == set(range(len(words)))
    assert any(trigger in b"Lost" for trigger in triggers.spellings)
    assert not any(trigger in b"they lost some" for trigger in triggers.lowered)
    found = compile_rules(Rule(name=pattern, pattern=pattern) for pattern in patterns).match_chunk(
        b"." * 5000 + b"\nthey lost some\nLost\nECHO\nAlpha error\nALPHA error\ntorch error\n"
    )
    assert [hit.rule.name for hit in found] == [
        "Lost",
        "(?i)echo",
        "(?i)alpha",
        "(?:torch|Alpha) error",
        "(?i)alpha",
        "(?:torch|Alpha) error",
    ]


def test_every_example_of_every_shipped_rule_holds_a_trigger_of_that_rule() -> None:
    rules = read_rules(shipped_files())
    triggers = choose_triggers([rule.pattern for rule in rules], b"")
    assert [rules[index].name for index in triggers.unguarded] == []
    for index, rule in enumerate(rules):
        for line in rule.match:
            text = line.lower() if index in triggers.folded else line
            assert any(trigger in text.encode() for trigger in triggers.of_pattern[index]), (rule.name, line)


def test_a_scan_finds_the_same_places_however_its_literals_are_packed() -> None:
    literals = [f"{chr(97 + i % 26)}{i:02}x".encode() for i in range(40)]
    text = b"..".join(literals)
    for sample in (b"", text, b"any other text 12 13 14 " * 1000):
        assert build_scanner(literals, sample)(text) == [5 * i + i for i in range(40)]


def test_a_rule_set_is_the_same_with_any_background() -> None:
    rules = [Rule(name="a", pattern="loss is nan"), Rule(name="b", pattern=r"^\d+$")]
    text = b"loss is nan\n12\n" + b"." * 3000
    for background in (None, b"", b"loss is nan\n" * 100):
        found = [
            (hit.line_number, hit.rule.name)
            for hit in compile_rules(rules, background=background).match_chunk(text)
        ]
        assert found == [(0, "a"), (1, "b")]
