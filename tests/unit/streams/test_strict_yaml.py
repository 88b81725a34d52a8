"""What stands in a YAML file is what is meant, or it is an error with its line."""

from __future__ import annotations

import math

import pytest

from midwatch.streams.strict_yaml import (
    DEPTH_LIMIT,
    SIZE_LIMIT,
    Mistake,
    Mistakes,
    YamlMapping,
    YamlNode,
    YamlScalar,
    YamlSequence,
    core_scalar,
    read_yaml,
)


def read(text: str | bytes) -> tuple[YamlNode | None, list[str]]:
    mistakes: list[Mistake] = []
    tree = read_yaml("a.yaml", text.encode() if isinstance(text, str) else text, mistakes)
    return tree, [str(mistake) for mistake in mistakes]


def value(text: str) -> object:
    tree, mistakes = read(f"key: {text}\n")
    assert not mistakes
    assert isinstance(tree, YamlMapping)
    node = tree.entries["key"].node
    assert isinstance(node, YamlScalar)
    return node.value


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("on", "on"),
        ("No", "No"),
        ("12:30:00", "12:30:00"),
        ("2026-11-20", "2026-11-20"),
        ("1e3", 1000.0),
        ("0o17", 15),
        ("017", 17),
        ("0x1F", 31),
        ("-3", -3),
        (".5", 0.5),
        ("true", True),
        ("~", None),
        ("", None),
        ("1_000", "1_000"),
        ("'12'", "12"),
        ('"true"', "true"),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("9" * 40, int("9" * 40)),
    ],
)
def test_scalars_are_those_of_yaml_1_2(text: str, meant: object) -> None:
    got = value(text)
    assert got == meant
    assert type(got) is type(meant)


def test_nan_is_a_number() -> None:
    assert isinstance(got := core_scalar(".nan"), float)
    assert math.isnan(got)


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("a: &x 1\n", "1:4", "the anchor &x"),
        ("a: *x\n", "1:4", "the alias *x"),
        ("a: !!int '3'\n", "1:4", "the tag"),
        ("<<: {a: 1}\n", "1:1", "the merge key <<"),
        ("a: 1\nb: 2\na: 3\n", "3:1", "the key 'a' again, first on line 1"),
        ("1: a\n", "1:1", "the key 1 is not text"),
        ("? [a, b]\n: 1\n", "1:3", "a list or mapping as a key"),
        ("a: 1\n---\nb: 2\n", "2:1", "a second document"),
        ("a: b: c\n", "1:5", "not YAML"),
        ("a: [1, 2\n", "2:1", "not YAML"),
        ("a:\n\t- b\n", "2:1", "not YAML"),
        ("é: 1\na: '\x07'\n", "2:5", "forbids"),
    ],
)
def test_what_yaml_would_guess_at_is_an_error_with_its_place(text: str, place: str, what: str) -> None:
    _, mistakes = read(text)
    assert len(mistakes) == 1, mistakes
    assert mistakes[0].startswith(f"a.yaml:{place}: ")
    assert what in mistakes[0]
    assert "\n  " in mistakes[0], "every mistake has a remedy"


def test_bytes_that_are_no_utf8_are_named_with_their_column() -> None:
    _, mistakes = read("a: 1\né: ".encode() + b"\xff\n")
    assert mistakes[0].startswith("a.yaml:2:4: byte 0xff is not UTF-8")


def test_every_mistake_is_told_in_one_run() -> None:
    tree, mistakes = read("a: &x 1\nb: *x\nb: 2\nc: !!str 3\n")
    assert len(mistakes) == 4
    assert isinstance(tree, YamlMapping), "what can be read is still there, so that later checks can speak"


def test_a_bomb_of_aliases_does_not_grow() -> None:
    rows = "".join(f"b{n}: &b{n} [{', '.join([f'*b{n - 1}'] * 9)}]\n" for n in range(1, 10))
    tree, mistakes = read("b0: &b0 lol\n" + rows)
    assert isinstance(tree, YamlMapping)
    assert len(mistakes) == 10 + 9 * 9, "each anchor and each alias once, and nothing expanded"


def test_depth_and_size_have_limits() -> None:
    assert "nested more than" in read("[" * 5000)[1][0]
    assert not read("[" * DEPTH_LIMIT + "]" * DEPTH_LIMIT)[1]
    assert "bytes, more than" in read(b"#" * (SIZE_LIMIT + 1))[1][0]


def test_an_empty_file_is_no_mistake() -> None:
    assert read("# only a comment\n") == (None, [])


def test_values_keep_their_places() -> None:
    tree, _ = read("a:\n  - 1\n  - b: 2\n")
    assert isinstance(tree, YamlMapping)
    items = tree.entries["a"].node
    assert isinstance(items, YamlSequence)
    assert [str(item.place) for item in items.items] == ["a.yaml:2:5", "a.yaml:3:5"]


def test_mistakes_are_listed_in_the_order_of_the_file() -> None:
    found: list[Mistake] = []
    read_yaml("a.yaml", b"a: *x\nb: *y\n", found)
    assert [line for line in str(Mistakes(found[::-1])).splitlines() if "the alias" in line] == [
        "a.yaml:1:4: the alias *x",
        "a.yaml:2:4: the alias *y",
    ]
