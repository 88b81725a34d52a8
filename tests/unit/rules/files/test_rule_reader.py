"""Rule files: read with their examples, refused with every mistake at once."""

from __future__ import annotations

import pytest

from midwatch.rules.errors import RuleErrors
from midwatch.rules.files.rule_reader import read_rules
from midwatch.rules.model import Mode, Phase, RateLimit, Role, Severity


def rule_file(*lines: str) -> bytes:
    return "\n".join(("version: 1", "rules:", *lines, "")).encode()


FULL = rule_file(
    "  - name: toy_oom",
    "    role: cause",
    "    error_type: oom",
    "    subsystem: cuda",
    "    severity: critical",
    "    transient: false",
    "    mode: crash",
    "    phase: training",
    "    pattern: 'rank (?P<r>\\d+) out of memory, wanted (?P<size>\\S+)'",
    "    captures: {r: rank}",
    "    remedy: Smaller batch.",
    "    rate_limit: {hits: 3, per: 1m}",
    "    stop_pattern: 'recovered'",
    "    source: toy trainer",
    "    metadata: {team: infra, since: 2026}",
    "    match: ['rank 3 out of memory, wanted 2GiB']",
    "    no_match: ['rank 3 has memory']",
)


def place(data: bytes, text: str) -> str:
    """Where a text stands for the first time, as an error would say it."""
    before = data.decode()[: data.decode().index(text)]
    return f"r.yaml:{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


def mistakes(data: bytes) -> list[str]:
    with pytest.raises(RuleErrors) as caught:
        read_rules({"r.yaml": data})
    assert caught.value.exit_code == 3
    return [str(error).split("\n")[0] for error in caught.value.errors]


@pytest.mark.capability("S001-14", "S001-15", "S001-25", "S001-26", "S001-27", "S001-28")
def test_a_rule_holds_all_that_its_file_says() -> None:
    (rule,) = read_rules({"r.yaml": FULL})
    assert (rule.name, rule.error_type, rule.subsystem) == ("toy_oom", "oom", "cuda")
    assert (rule.role, rule.severity, rule.mode, rule.phase) == (
        Role.CAUSE,
        Severity.CRITICAL,
        Mode.CRASH,
        Phase.TRAINING,
    )
    assert rule.transient is False
    assert rule.captures == {"r": "rank"}
    assert rule.rate_limit == RateLimit(3, 60.0)
    assert rule.stop_pattern == "recovered"
    assert rule.metadata == {"team": "infra", "since": 2026}
    assert str(rule.location) == "r.yaml:3:5"


def test_an_omitted_transience_is_unknown_and_not_false() -> None:
    (rule,) = read_rules({"r.yaml": rule_file("  - {name: a, pattern: x, error_type: nccl}")})
    assert rule.transient is None


def test_unknown_keys_are_mistakes_that_name_the_likely_key() -> None:
    data = rule_file("  - {name: a, pattern: x, error_type: nccl, severty: error}")
    with pytest.raises(RuleErrors) as caught:
        read_rules({"r.yaml": data})
    assert str(caught.value).split("\n") == [
        f"{place(data, 'severty')}: unknown key `severty` in rule 'a'",
        "  Did you mean `severity`?",
    ]


def test_all_mistakes_of_all_files_come_at_once_in_the_order_of_the_files() -> None:
    first = rule_file("  - {name: A b, pattern: '(', error_type: oom}", "  - {pattern: x}")
    second = b"version: 2\nrules: {}\n"
    with pytest.raises(RuleErrors) as caught:
        read_rules({"a.yaml": first, "b.yaml": second})
    assert [str(error).split("\n")[0] for error in caught.value.errors] == [
        "a.yaml:3:12: 'A b' is no name for a rule",
        "a.yaml:3:26: RE2 does not accept `pattern`: missing ): (",
        "a.yaml:4:5: the rule has no `name`",
        "a.yaml:4:5: the rule is a cause without an error type",
        "b.yaml:1:10: version 2 of the rule format",
        "b.yaml:2:8: `rules` is a mapping, not a list",
    ]


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("(?<=cpu )oom", "no look-ahead or look-behind"),
        (r"(a)\1", "no back-references"),
        ("a++", "possessive"),
        (r"end\Z", r"\\z"),
        ("(?x)a", "no verbose mode"),
        (r"a{2000}", "at most 1000"),
    ],
)
def test_syntax_that_re2_lacks_comes_with_what_to_write_instead(pattern: str, advice: str) -> None:
    data = rule_file(f"  - {{name: a, error_type: oom, pattern: '{pattern}'}}")
    with pytest.raises(RuleErrors, match=advice):
        read_rules({"r.yaml": data})


def test_examples_are_tried_when_the_file_is_read() -> None:
    data = rule_file("  - {name: a, error_type: oom, pattern: 'x+', match: [xx, yy], no_match: [z, ax]}")
    assert mistakes(data) == [
        f"{place(data, 'yy')}: rule 'a' does not match its example: 'yy'",
        f"{place(data, 'ax')}: rule 'a' matches the line that it must not match: 'ax'",
    ]


def test_a_file_that_is_read_again_has_the_same_rules_and_the_same_mistakes() -> None:
    good = rule_file("  - {name: a, error_type: oom, pattern: 'again'}")
    assert read_rules({"r.yaml": good})[0] is read_rules({"r.yaml": good})[0]
    assert read_rules({"other.yaml": good})[0].location.file == "other.yaml"
    bad = rule_file("  - {name: a, error_type: oom, pattern: 'again', match: [never]}")
    assert mistakes(bad) == mistakes(bad)
    assert mistakes(bad) != []


def test_a_pattern_that_matches_every_line_is_refused() -> None:
    assert "matches an empty line" in mistakes(rule_file("  - {name: a, error_type: oom, pattern: 'x*'}"))[0]


def test_captures_must_name_groups_of_the_pattern() -> None:
    data = rule_file("  - {name: a, error_type: oom, pattern: '(?P<r>\\d)', captures: {rank: rank}}")
    assert mistakes(data) == [f"{place(data, 'rank: rank')}: the pattern has no group 'rank'"]


def test_two_groups_of_one_name_are_refused() -> None:
    data = rule_file("  - {name: a, error_type: oom, pattern: 'a(?P<r>1)|b(?P<r>2)'}")
    start = place(data, "'a(")
    assert mistakes(data) == [f"{start}: group 'r' is in the pattern twice"]


def test_two_rules_of_one_name_are_refused_across_files() -> None:
    one = rule_file("  - {name: a, error_type: oom, pattern: x}")
    with pytest.raises(RuleErrors, match=r"second rule named 'a', first at a\.yaml:3:5"):
        read_rules({"a.yaml": one, "b.yaml": one})


@pytest.mark.parametrize(("word", "kind"), [("yes", "text"), ("1", "a whole number")])
def test_transient_is_true_or_false_and_nothing_like_it(word: str, kind: str) -> None:
    data = rule_file(f"  - {{name: a, error_type: oom, pattern: x, transient: {word}}}")
    assert f"`transient` is {kind}, not true or false" in mistakes(data)[0]


@pytest.mark.parametrize("limit", ["900", "'15'", "-3m", "0s", "15 minutes"])
def test_a_silence_limit_without_a_unit_is_refused(limit: str) -> None:
    data = f"version: 1\nsilence: {{training: {limit}}}\n".encode()
    assert mistakes(data) == ["r.yaml:2:21: `training` is not a duration"]


def test_an_example_is_one_line() -> None:
    data = rule_file('  - {name: a, error_type: oom, pattern: x, match: ["x\\ny"]}')
    assert "more than one line" in mistakes(data)[0]


def test_a_file_that_is_no_mapping_is_a_mistake_and_no_crash() -> None:
    for data in (b"- a\n", b"text\n", b"", b"version: 1\nrules: [1, [a], {}]\n"):
        assert mistakes(data)
