"""Hydra's lists of defaults: what wins, what is replaced, where a group's file is looked for."""

from __future__ import annotations

import pytest

from midwatch.rules.errors import LocatedError
from midwatch.rules.oellm.composition import Composed, compose
from midwatch.streams.strict_yaml import YamlMapping, plain


def composed(root: str, **files: str) -> tuple[Composed, list[LocatedError]]:
    errors: list[LocatedError] = []
    named = {name.replace("__", "/") + ".yaml": text.encode() for name, text in files.items()}
    return compose(root.replace("__", "/") + ".yaml", named, errors), errors


def monitor(found: Composed) -> object:
    assert isinstance(found.monitor, YamlMapping)
    return plain(found.monitor)


BASE = (
    "class_name: SlurmLogMonitor\npoll_interval_seconds: 1\nmetadata: {a: 1, b: 1}\n"
    "log_signals: [{name: x}]\n"
)


@pytest.mark.capability("S001-08")
def test_mappings_merge_lists_replace_and_the_file_itself_wins() -> None:
    found, errors = composed(
        "m__top",
        m__base=BASE,
        m__top="defaults: [base, _self_]\nmetadata: {b: 2}\nlog_signals: [{name: y}]\n",
    )
    assert errors == []
    assert monitor(found) == {
        "class_name": "SlurmLogMonitor",
        "poll_interval_seconds": 1,
        "metadata": {"a": 1, "b": 2},
        "log_signals": [{"name": "y"}],
    }


def test_self_first_lets_the_others_win_and_without_it_the_file_comes_last() -> None:
    above = "poll_interval_seconds: 2\n"
    first, _ = composed("m__top", m__base=BASE, m__top=f"defaults: [_self_, base]\n{above}")
    last, _ = composed("m__top", m__base=BASE, m__top=f"defaults: [base]\n{above}")
    assert isinstance(monitor(first), dict)
    assert monitor(first) | {"poll_interval_seconds": 2} == monitor(last)  # type: ignore[operator]  # both are dicts
    assert monitor(first) != monitor(last)


def test_a_group_is_looked_for_in_the_folders_above_and_others_are_not_read() -> None:
    found, errors = composed(
        "c__experiments__mine__run",
        c__experiments__mine__run="defaults: [../base, {/monitoring: m}, {/backend: gone}, _self_]\n",
        c__experiments__base="# @package _global_\ndefaults:\n  - /restart: r\n",
        c__monitoring__m=BASE,
        c__restart__r="policies: [{mode: crash}]\n",
    )
    assert errors == []
    assert monitor(found) == plain_of(BASE)
    assert found.policies is not None
    assert "c/restart/r.yaml" in found.read


def plain_of(text: str) -> object:
    found, _ = composed("x", x=text)
    return monitor(found)


def test_an_override_takes_the_place_of_the_earlier_choice() -> None:
    found, _ = composed(
        "run",
        run="defaults:\n  - /job: one\n  - override /job: two\n",
        job__one="log_path: one\ncancel_condition: {class_name: X}\n",
        job__two="log_path: two\n",
    )
    assert (found.is_job, monitor(found)) == (True, {"log_path": "two"})


def test_a_circle_is_an_error_and_a_missing_file_a_note() -> None:
    _, errors = composed("m__a", m__a="defaults: [b]\nlog_signals: []\n", m__b="defaults: [a]\n")
    assert "includes itself: m/a.yaml -> m/b.yaml -> m/a.yaml" in errors[0].what
    found, errors = composed("e__a", e__a="defaults: [gone, optional /job: gone]\nproject: {}\n")
    assert errors == []
    assert "there is no file for 'gone'" in found.notes[0].what
    _, errors = composed("e__a", e__a="defaults: [{/job: gone}]\n")
    assert "there is no file for job 'gone'" in errors[0].what


def test_a_choice_made_only_at_the_launch_is_told() -> None:
    found, errors = composed("a", a="defaults: [{/monitoring: '${stage}'}]\n")
    assert (errors, found.monitor) == ([], None)
    assert "${stage}" in found.notes[0].what


def test_an_empty_file_adds_nothing() -> None:
    found, errors = composed(
        "m__top", m__base="# nothing yet\n", m__top="defaults: [base]\nlog_signals: []\n"
    )
    assert (errors, monitor(found)) == ([], {"log_signals": []})
