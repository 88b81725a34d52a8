"""Python's patterns as RE2's: the same lines are found, and captures keep their names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from midwatch.rules.expressions import Expression
from midwatch.rules.oellm.patterns import NotTranslated, Translated, translate, translate_substring


def captures(done: Translated, line: str) -> dict[str, str]:
    expression = Expression(done.pattern)
    spans = expression.search(line.encode())
    assert spans is not None
    numbers = expression.group_numbers
    return {field: line[slice(*spans[numbers[group]])] for group, field in done.captures.items()}


def test_numbered_groups_get_names_wherever_brackets_stand() -> None:
    done = translate(r"[(](?:a|(b))\((?P<n>c)[)(]([^)]+)", {"first": 1, "third": 3, "n": "n", "all": "match"})
    assert captures(done, "(b(c)dd") == {"first": "b", "third": "dd", "n": "c", "all": "(b(c)dd"}


def test_a_field_without_a_group_is_left_out() -> None:
    done = translate("a(b)", {"x": 2, "y": "nobody", "z": 1})
    assert (dict(done.captures), done.left_out) == ({"z": "z"}, ("x", "y"))


def test_a_name_that_is_taken_is_not_taken_twice() -> None:
    done = translate("(?P<text>a)(b)", {"text": 2})
    assert captures(done, "ab") == {"text": "b"}


@pytest.mark.parametrize("pattern", ["a\\nb", "a\nb", "(?<=x)y", "(a)\\1", "x*", ".*", "(unclosed"])
def test_what_cannot_be_searched_line_by_line_is_refused_with_advice(pattern: str) -> None:
    with pytest.raises(NotTranslated) as raised:
        translate(pattern, {})
    assert raised.value.remedy


@pytest.mark.parametrize("pattern", ["a[^\\n]*b", "a\\n?", r"path\\new", "(?s)a.b", "[\\s\\S]x"])
def test_a_line_feed_that_need_not_be_there_does_no_harm(pattern: str) -> None:
    done = translate(pattern, {})
    harmless = ("[^\\n]", "\\\\n")
    assert bool(done.differs) is not any(part in pattern for part in harmless)


@given(text=st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=12))
def test_a_substring_is_found_as_it_stands(text: str) -> None:
    expression = Expression(translate_substring(text, {}).pattern)
    assert expression.search(f"before {text} behind".encode()) is not None
    assert expression.search(b"nothing of it") is None or text in "nothing of it"


_ATOMS = st.sampled_from(
    ["a", "b", "(a)", "(?P<n>b)", "(?:ab)", "[ab(]", r"\(", "a?", "(b|c)", "[^)]", r"\d+"]
)


@given(st.lists(_ATOMS, min_size=1, max_size=5, unique=True), st.text("abc(1", max_size=8))
def test_numbers_mean_what_they_meant_in_python(atoms: list[str], line: str) -> None:
    pattern = "".join(atoms) + "z"
    count = re.compile(pattern).groups
    done = translate(pattern, {f"f{number}": number for number in range(1, count + 1)} | {"whole": "match"})
    found = re.search(pattern, f"{line}z")
    spans = Expression(done.pattern).search(f"{line}z".encode())
    assert (found is None) is (spans is None)
    if found is not None and "?" not in pattern:
        wanted = {f"f{number}": found[number] or "" for number in range(1, count + 1)} | {"whole": found[0]}
        assert captures(done, f"{line}z") == wanted
