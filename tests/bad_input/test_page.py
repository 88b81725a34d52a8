"""The page of bad input tells what the cases are."""

from __future__ import annotations

import ast
from pathlib import Path

from bad_input.page import page

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "bad-input.md"


def test_the_page_in_the_repository_is_the_present_one() -> None:
    assert PAGE.read_text() == page(), "PYTHONPATH=tests python -m bad_input.page > docs/bad-input.md"


def test_every_kind_of_refusal_that_the_code_knows_stands_there() -> None:
    words = {"failed"}
    for path in (ROOT / "streams").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            match node:
                case ast.Assign(targets=[ast.Name(id="refusal")], value=ast.Constant(value=str(word))):
                    words.add(word)
    assert len(words) == 7
    assert all(f"| `{word}` |" in page() for word in words)
