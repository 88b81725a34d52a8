"""`make test` tells how often each fault was hit, and does not pass where one never was."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from faults.chaos import short_form, tally
from faults.chaos.parts import PARTS, wanted


@pytest.fixture(autouse=True)
def nobody_counts_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(tally.FILE, raising=False)
    monkeypatch.delenv("PYTEST_XDIST_WORKER", raising=False)


def test_what_was_never_hit_is_named_and_what_was_is_counted() -> None:
    kept = short_form.begin()
    assert kept
    for part in PARTS:
        with tally.counting(part, "a case", 1) as count:
            for name in wanted(part):
                count.hit(name)
                count.hit(name)
    assert short_form.begin() is None, "one tally a run"
    table, never = short_form.end(kept)
    assert never == []
    assert "Redis emptied" in table
    assert not kept.exists()

    again = short_form.begin()
    assert again
    with tally.counting("chain", "a case", 1) as count:
        count.hit("Redis emptied")
    table, never = short_form.end(again)
    assert "chain: broker killed was never hit" in never
    assert "chain: Redis emptied was never hit" not in never


def test_without_a_case_there_is_nothing_to_tell() -> None:
    kept = short_form.begin()
    assert kept
    assert short_form.end(kept)[0] == ""


@pytest.mark.parametrize(
    ("arguments", "options", "whole"),
    [
        (["tests"], {}, True),
        (["tests/unit"], {}, False),
        (["tests"], {"keyword": "executor"}, False),
        (["tests"], {"maxfail": 1}, False),
    ],
)
def test_a_run_of_some_tests_is_not_judged(
    arguments: list[str], options: dict[str, Any], whole: bool
) -> None:
    config = SimpleNamespace(
        args=arguments,
        getini=lambda _name: ["tests"],
        getoption=options.get,
    )
    assert short_form.whole_suite(cast(pytest.Config, config)) is whole
