"""The gate's own eyes: each thing that the house forbids is seen, and what it allows is left alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import links, shape
from house.tree import SOURCE_ROOTS


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree in order."""
    root = tmp_path / "checkout"
    for name in SOURCE_ROOTS:
        package = root / name / "midwatch" / name
        package.mkdir(parents=True)
        (package / "py.typed").touch()
    (root / "README.md").write_text(
        "# One\n\n## Two words\n\n[below](#two-words) [out](https://x.example/a)\n"
    )
    return root


def test_a_tree_in_order_raises_nothing(root: Path) -> None:
    assert links.check(root) == []
    assert shape.check(root) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[a](gone.md)", "no such file"),
        ("![a](gone.png)", "no such file"),
        ('<a href="gone.md">a</a>', "no such file"),
        ("[a][b]\n\n[b]: gone.md", "no such file"),
        ("[a][nowhere]", "no such link definition"),
        ("[a](README.md#three)", "no such heading"),
        ("[a](#three)", "no such heading"),
        ("[a](../outside.md)", "leads out of the repository"),
        ("[a](/etc/passwd)", "starts with /"),
        ("| a |\n|---|\n| [a](gone.md) |", "no such file"),
    ],
)
def test_a_link_that_leads_nowhere_is_found(root: Path, text: str, complaint: str) -> None:
    (root.parent / "outside.md").touch()
    (root / "page.md").write_text(text)
    (problem,) = links.check(root)
    assert complaint in problem
    assert problem.startswith("page.md:")


@pytest.mark.parametrize(
    "text", ["`[a](gone.md)`", "```\n[a](gone.md)\n```", "[a](README.md#two-words)", "a[0][1]"]
)
def test_a_link_in_code_or_a_living_one_is_left_alone(root: Path, text: str) -> None:
    (root / "page.md").write_text(text if text != "a[0][1]" else "`a[0][1]`")
    assert links.check(root) == []


@pytest.mark.parametrize(
    ("path", "text", "complaint"),
    [
        ("rules/midwatch/rules/long.py", "x = 1\n" * 401, "401 lines"),
        ("rules/midwatch/rules/utils.py", "", "'utils' says nothing"),
        ("tests/helpers/test_a.py", "", "'helpers' says nothing"),
        ("rules/__init__.py", "", "closes the midwatch namespace"),
        ("rules/midwatch/__init__.py", "", "closes the midwatch namespace"),
        ("page.md", "see {root}/README.md", "a path of this machine"),
        ("page.md", "see https://" + "files.python" + "hosted.org/packages", "a registry's address"),
        ("rules/midwatch/rules/a.py", "x = 1  # " + "noqa\n", "names no rule"),
        ("rules/midwatch/rules/a.py", "x = 1  # " + "noqa: S101\n", "gives no reason"),
        ("rules/midwatch/rules/a.py", "x = 1  # " + "type: ignore\n", "names no rule"),
        ("rules/midwatch/rules/a.py", "x = 1  # " + "type: ignore[attr-defined]\n", "gives no reason"),
    ],
)
def test_what_the_house_forbids_is_found(root: Path, path: str, text: str, complaint: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text.replace("{root}", str(root)))
    (problem,) = shape.check(root)
    assert complaint in problem
    assert problem.startswith(path)


@pytest.mark.parametrize(
    "text",
    [
        "x = 1  # " + "noqa: S101 the user asked for it\n",
        "x = 1  # " + "type: ignore[attr-defined]  # the stubs lack it\n",
        "# the stubs of this library lack it\nx = 1  # " + "type: ignore[attr-defined]\n",
        "x = 1\n" * 400,
    ],
)
def test_an_exception_with_its_rule_and_reason_is_allowed(root: Path, text: str) -> None:
    (root / "rules/midwatch/rules/a.py").write_text(text)
    assert shape.check(root) == []


def test_a_package_without_py_typed_is_found(root: Path) -> None:
    (root / "streams/midwatch/streams/py.typed").unlink()
    (problem,) = shape.check(root)
    assert "no py.typed" in problem
