"""The page of settings tells what the settings are."""

from __future__ import annotations

from pathlib import Path

import pytest

from midwatch.streams.settings.file import load_settings
from midwatch.streams.settings.page import page
from midwatch.streams.settings.reader import leaves, variable_name

PAGE = Path(__file__).parents[4] / "docs" / "settings.md"


def test_the_page_in_the_repository_is_the_present_one() -> None:
    assert PAGE.read_text() == page(), "python -m midwatch.streams.settings.page > docs/settings.md"


@pytest.mark.parametrize("path", [path for path, _ in leaves()], ids=".".join)
def test_every_setting_stands_there_with_its_variable(path: tuple[str, ...]) -> None:
    assert f"`{variable_name(path)}` |" in page()


def test_the_example_is_right_but_for_its_secrets(tmp_path: Path) -> None:
    example = page().split("```yaml\n")[1].split("```")[0]
    (tmp_path / "secret").write_text("x\n")
    file = tmp_path / "midwatch.yaml"
    file.write_text(example.replace("/run/secrets/kafka", "secret").replace("/run/secrets/redis", "secret"))
    settings = load_settings(file, environment={}, here=tmp_path)
    assert settings.detect.limits.training == 900
