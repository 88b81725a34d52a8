"""What a person asks of rules, and the schema that an editor asks."""

from __future__ import annotations

import jsonschema
import pytest

from midwatch.rules.bundle import read_bundle
from midwatch.rules.errors import LocatedError
from midwatch.rules.fields import Fields
from midwatch.rules.files.file_schema import rule_file_schema
from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.loader import shipped_files
from midwatch.rules.matching.compiler import compile_rules
from midwatch.rules.matching.inspection import bench_text, check_files, differences, explain_line
from midwatch.rules.model import Rule
from midwatch.streams.strict_yaml import plain, read_yaml

RULES = compile_rules(
    [
        Rule(name="oom", pattern=r"out of memory on (?P<rank>\d+)", error_type="oom"),
        Rule(name="killed", pattern=r"memory killer took \w+", error_type="host_oom"),
    ]
)


def test_an_explanation_names_the_match_its_captures_and_its_trigger() -> None:
    (hit,) = explain_line(RULES, b"GPU out of memory on 3").hits
    assert (hit.rule.name, hit.matched, hit.captures) == ("oom", "out of memory on 3", {"rank": "3"})
    assert hit.trigger in "out of memory on 3"


def test_a_near_miss_names_the_literal_that_stood_there() -> None:
    explanation = explain_line(RULES, b"out of memory on the card")
    assert explanation.hits == ()
    assert [miss.rule.name for miss in explanation.misses if miss.trigger][:1] == ["oom"]


def test_a_near_miss_minds_the_case_where_its_rule_does() -> None:
    words = ("alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf")
    either = [Rule(name=word, pattern=rf"(?i){word} \d lost") for word in words]
    rules = compile_rules([*either, Rule(name="hotel", pattern=r"hotel \d lost")])
    shouted, said = explain_line(rules, b"BRAVO AND HOTEL LOST"), explain_line(rules, b"bravo and hotel lost")
    assert {"bravo"} <= {miss.rule.name for miss in shouted.misses} <= set(words)
    assert {"bravo", "hotel"} <= {miss.rule.name for miss in said.misses}


def test_a_check_gives_the_bundle_or_all_mistakes() -> None:
    assert check_files("megatron_basic", shipped_files()).errors == ()
    checked = check_files("a", {"a.yaml": b"version: 1\nrules: [{name: x}, {name: y, pattern: '('}]\n"})
    assert checked.bundle is None
    assert len(checked.errors) == 4


def test_a_bench_counts_lines_and_hits_whatever_the_chunks() -> None:
    text = b"out of memory on 1\nfine\n" * 500
    ticks = iter(range(10_000))
    speed = bench_text(RULES, text, lambda: float(next(ticks)), chunk=100)
    assert (speed.lines, dict(speed.hits)) == (1000, {"oom": 500})
    assert speed.seconds > 100


def test_two_bundles_differ_by_rule_and_not_by_place() -> None:
    before = read_bundle("a", {"a.yaml": b"version: 1\nrules: [{name: x, pattern: x, error_type: oom}]\n"})
    one, other = b"- {name: x, pattern: x, error_type: oom}\n", b"- {name: y, pattern: y, error_type: oom}\n"
    moved = b"version: 1\n\n\nrules:\n" + one + other
    changed = b"version: 1\nrules: [{name: x, pattern: z, error_type: oom}]\n"
    assert differences(before, read_bundle("a", {"a.yaml": moved})) == (("added", "y"),)
    assert differences(before, read_bundle("a", {"a.yaml": changed})) == (("changed", "x"),)


def test_the_schema_accepts_every_shipped_file() -> None:
    validator = jsonschema.Draft202012Validator(rule_file_schema())
    errors: list[LocatedError] = []
    for name, data in shipped_files().items():
        node = read_yaml(name, data, errors)
        assert node is not None
        assert [error.message for error in validator.iter_errors(plain(node))] == [], name


def test_the_schema_knows_exactly_the_keys_that_the_reader_knows(monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, set[str]] = {}
    original = Fields.done

    def done(self: Fields) -> None:
        known[self.what] = set(self.known)
        original(self)

    monkeypatch.setattr(Fields, "done", done)
    # No other test reads a file of this name: what a process has read once it does not read again.
    read_rules({"watched.yaml": b"version: 1\nrules: [{name: x, pattern: x, error_type: oom}]\n"})
    schema = rule_file_schema()
    assert known["the file"] == set(schema["properties"])  # type: ignore[call-overload]  # a plain dict inside
    rule_schema = schema["properties"]["rules"]["items"]  # type: ignore[index]  # a plain dict inside
    assert known["rule 'x'"] == set(rule_schema["properties"])


@pytest.mark.parametrize("bad", [{"version": 1, "rule": []}, {"version": 1, "rules": [{"name": "a"}]}])
def test_the_schema_refuses_what_the_reader_refuses(bad: dict[str, object]) -> None:
    assert list(jsonschema.Draft202012Validator(rule_file_schema()).iter_errors(bad))
