"""Strict YAML: what a person meant is read, what YAML would guess at is an error with its place."""

from __future__ import annotations

import math

import pytest

from midwatch.streams.settings.mistakes import Mistake, Mistakes, settings_tree
from midwatch.streams.strict_yaml import (
    MAX_BYTES,
    MAX_DEPTH,
    LocatedError,
    YamlList,
    YamlMapping,
    plain,
    plain_scalar,
    read_yaml,
)


def read(text: str | bytes) -> tuple[object, list[str]]:
    errors: list[LocatedError] = []
    node = read_yaml("r.yaml", text if isinstance(text, bytes) else text.encode(), errors)
    return (None if node is None else plain(node)), [str(error).split("\n")[0] for error in errors]


@pytest.mark.parametrize(
    "text", ["on", "off", "yes", "no", "Yes", "12:30:00", "1_000", "0777x", "2026-03-02"]
)
def test_words_that_yaml_1_1_would_convert_stay_text(text: str) -> None:
    assert plain_scalar(text) == text


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        ("False", False),
        ("", None),
        ("~", None),
        ("2026-11-20", "2026-11-20"),
        ("017", 17),
        ("0x1F", 31),
        ("1_000", "1_000"),
        (".inf", math.inf),
        ("9" * 40, int("9" * 40)),
        ("0017", 17),
        ("0o17", 15),
        ("0xff", 255),
        ("-3", -3),
        ("1e3", 1000.0),
        (".5", 0.5),
        ("-.inf", -math.inf),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, value: object) -> None:
    read_value = plain_scalar(text)
    assert read_value == value
    assert type(read_value) is type(value)


def test_quoted_scalars_are_always_text() -> None:
    assert read("a: 'true'\nb: \"1\"\n") == ({"a": "true", "b": "1"}, [])


def test_every_key_knows_its_line_and_column() -> None:
    errors: list[LocatedError] = []
    node = read_yaml("r.yaml", b"first: 1\nnested:\n  - key: [a, b]\n", errors)
    assert isinstance(node, YamlMapping)
    assert str(node.entries["nested"][0]) == "r.yaml:2:1"
    assert str(node.entries["nested"][1].location) == "r.yaml:3:3"


def test_columns_count_characters_not_bytes() -> None:
    _, errors = read("a: {é: 1, é: 2}\n")
    assert errors == ["r.yaml:1:11: key 'é' appears twice in one mapping, first on line 1"]


def test_all_mistakes_of_a_file_come_at_once() -> None:
    _, errors = read("a: &x 1\nb: *x\na: 2\nc: !!int 3\n1: one\n<<: {d: 4}\n")
    assert errors == [
        "r.yaml:1:4: anchor &x",
        "r.yaml:2:4: alias *x",
        "r.yaml:3:1: key 'a' appears twice in one mapping, first on line 1",
        "r.yaml:4:4: tag 'tag:yaml.org,2002:int'",
        "r.yaml:5:1: a key that is a whole number, not text",
        "r.yaml:6:1: a merge key <<",
    ]


def test_a_mapping_as_a_key_is_an_error_and_reading_goes_on() -> None:
    value, errors = read("? {a: 1}\n: b\nc: d\n")
    assert errors == ["r.yaml:1:3: a key that is a list or a mapping"]
    assert isinstance(value, dict)
    assert value["c"] == "d"


def test_a_second_document_is_an_error() -> None:
    assert read("a: 1\n---\nb: 2\n")[1] == ["r.yaml:2:1: a second document in one file"]


def test_a_mistake_of_syntax_has_its_place() -> None:
    _, errors = read("a: 1\nb: [1, 2\nc: 3\n")
    assert len(errors) == 1
    assert errors[0].startswith("r.yaml:3:")


def test_a_billion_laughs_is_refused_before_it_grows() -> None:
    text = "a: &a [x, x]\n" + "".join(f"b{i}: &b{i} [*a, *a, *a]\n" for i in range(50))
    value, errors = read(text)
    assert len(errors) > 50
    assert len(str(value)) < 10_000


def test_depth_and_size_are_limited() -> None:
    assert "nested deeper" in read("[" * 5000)[1][0]
    assert f"more than {MAX_BYTES}" in read(b"#" * (MAX_BYTES + 1))[1][0]


def test_bytes_that_are_no_utf8_are_named() -> None:
    assert read(b"a: 1\nb: x\xff\n")[1] == ["r.yaml:2:5: byte 0xff is not UTF-8"]


def test_control_characters_are_named() -> None:
    _, errors = read("a: 1\nb: \x07\n")
    assert errors == ["r.yaml:2:4: character '\\x07' is not allowed in YAML"]


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert read(b"\xef\xbb\xbfa: 1\n") == ({"a": 1}, [])


def test_nan_is_a_number() -> None:
    assert isinstance(got := plain_scalar(".nan"), float)
    assert math.isnan(got)


def test_a_number_beyond_64_bits_is_plain_as_a_float() -> None:
    assert read(f"a: {2**64}\nb: {2**63 - 1}\nc: true\n")[0] == {"a": 2.0**64, "b": 2**63 - 1, "c": True}


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a: &x 1\n", "1:4", "anchor &x"),
        ("a: *x\n", "1:4", "alias *x"),
        ("a: !!int '3'\n", "1:4", "tag"),
        ("<<: {a: 1}\n", "1:1", "a merge key <<"),
        ("a: 1\nb: 2\na: 3\n", "3:1", "key 'a' appears twice in one mapping, first on line 1"),
        ("1: a\n", "1:1", "a key that is a whole number, not text"),
        ("? [a, b]\n: 1\n", "1:3", "a key that is a list or a mapping"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second document"),
        ("a: b: c\n", "1:5", "not valid YAML"),
        ("a: [1, 2\n", "2:1", "not valid YAML"),
        ("a:\n\t- b\n", "2:1", "not valid YAML"),
        ("é: 1\na: '\x07'\n", "2:5", "character '\\x07' is not allowed in YAML"),
    ],
)
def test_what_yaml_would_guess_at_is_an_error_with_its_place_and_remedy(
    text: str, place: str, what: str
) -> None:
    errors: list[LocatedError] = []
    read_yaml("r.yaml", text.encode(), errors)
    (error,) = errors
    assert str(error).startswith(f"r.yaml:{place}: ")
    assert what in error.what
    assert error.remedy


def test_bytes_that_are_no_utf8_are_named_with_their_column() -> None:
    assert read("a: 1\né: ".encode() + b"\xff\n")[1] == ["r.yaml:2:4: byte 0xff is not UTF-8"]


def test_every_character_that_is_not_allowed_is_named_at_once() -> None:
    assert [error.split(": ")[0] for error in read("é: \x07\nb: \x08\n")[1]] == ["r.yaml:1:4", "r.yaml:2:4"]


def test_a_bomb_of_aliases_does_not_grow() -> None:
    rows = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 10))
    assert len(read("b0: &b0 lol\n" + rows)[1]) == 10 + 9 * 9, "each once, and nothing expanded"


def test_as_deep_as_allowed_is_no_mistake() -> None:
    assert read("[" * MAX_DEPTH + "]" * MAX_DEPTH)[1] == []


def test_values_keep_their_places() -> None:
    node = read_yaml("a.yaml", b"a:\n  - 1\n  - b: 2\n", [])
    assert isinstance(node, YamlMapping)
    items = node.entries["a"][1]
    assert isinstance(items, YamlList)
    assert [str(item.location) for item in items.items] == ["a.yaml:2:5", "a.yaml:3:5"]


def test_an_empty_file_is_a_mistake_in_rules_and_none_in_settings() -> None:
    assert read("# only a comment\n") == (None, ["r.yaml:1:1: the file is empty"])
    mistakes: list[Mistake] = []
    assert settings_tree("a.yaml", b"# only a comment\n", mistakes) is None
    assert mistakes == []


def test_mistakes_of_settings_are_listed_in_the_order_of_the_file() -> None:
    found: list[Mistake] = []
    settings_tree("a.yaml", b"a: *x\nb: *y\n", found)
    assert [line for line in str(Mistakes(found[::-1])).splitlines() if "alias *" in line] == [
        "a.yaml:1:4: alias *x",
        "a.yaml:2:4: alias *y",
    ]
