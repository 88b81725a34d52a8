"""The page on foreign configurations names every key that is read, and what becomes of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.rules.oellm import actions, events, generation, monitor

PAGE = (Path(__file__).parents[4] / "docs/oellm.md").read_text()
KEYS = sorted(
    generation.MONITOR_KEYS
    | generation.JOB_KEYS
    | monitor.KNOWN_KEYS
    | (events.LOG_KEYS - {"class_name", "actions", "condition"})
    | actions.REQUESTS.keys()
)


@pytest.mark.parametrize("key", KEYS)
def test_each_key_stands_on_the_page(key: str) -> None:
    assert f"`{key}`" in PAGE
