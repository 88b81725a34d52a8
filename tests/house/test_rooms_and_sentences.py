"""The gate finds a name that stands twice, a crowded part, a circle, and a sentence nobody can hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from house import rooms, sentences

CLASS = "class Limits:\n    pass\n"


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_the_product_has_no_problem_of_either_kind() -> None:
    assert rooms.check() == []


def test_a_class_name_that_stands_twice_is_told_with_both_places(tmp_path: Path) -> None:
    a, b = "rules/midwatch/rules/a.py", "agents/midwatch/agents/b.py"
    (problem,) = rooms.check(tree(tmp_path, {a: CLASS, b: f"\n{CLASS}"}))
    assert "Limits" in problem
    assert f"{a}:1" in problem
    assert f"{b}:2" in problem


def test_nine_modules_at_the_top_of_a_part_are_too_many(tmp_path: Path) -> None:
    files = {f"rules/midwatch/rules/m{n}.py": "" for n in range(8)}
    assert rooms.check(tree(tmp_path, {**files, "rules/midwatch/rules/room/m.py": ""})) == []
    (problem,) = rooms.check(tree(tmp_path, {"rules/midwatch/rules/ninth.py": ""}))
    assert "9 modules" in problem


def test_modules_that_import_each_other_are_a_circle(tmp_path: Path) -> None:
    here, there = "rules/midwatch/rules/a.py", "rules/midwatch/rules/b.py"
    files = {here: "from midwatch.rules import b\n", there: "from midwatch.rules.a import x\n"}
    found = rooms.check(tree(tmp_path, files))
    assert "midwatch.rules.a, midwatch.rules.b" in found[0]


def test_rooms_that_import_each_other_are_a_circle_though_no_module_does(tmp_path: Path) -> None:
    files = {
        "rules/midwatch/rules/one/a.py": "from midwatch.rules.two.b import x\n",
        "rules/midwatch/rules/one/c.py": "",
        "rules/midwatch/rules/two/b.py": "",
        "rules/midwatch/rules/two/d.py": "def later():\n    from midwatch.rules.one.c import y\n",
    }
    (problem,) = rooms.check(tree(tmp_path, files))
    assert problem.startswith("midwatch.rules: its rooms")
    assert problem.endswith("one, two")


LONG = " ".join(["word"] * 26)
FITS = " ".join(["Word", *["word"] * 24])


@pytest.mark.parametrize(
    "module",
    [
        f'"""{LONG}."""\n',
        f'"""Short.\n\n{LONG}.\n"""\n',
        f'x = 1\n"""{LONG}."""\n',
        f"# {' '.join(['word'] * 13)}\n# {' '.join(['word'] * 13)}\n",
        f"x = 1  # {LONG}\n",
        f'def f():\n    """Short.\n\n    - {LONG}\n    """\n',
    ],
)
def test_a_sentence_of_26_words_is_too_long_wherever_it_stands(module: str, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(module)
    (problem,) = sentences.too_long(path)
    assert "26 words" in problem


@pytest.mark.parametrize(
    "module",
    [
        f'"""{FITS}. {FITS}."""\n',
        f'"""{FITS}: {FITS}"""\n',
        f'"""Short.\n\n- {FITS}\n- {FITS}\n"""\n',
        f'"""{" ".join(["word"] * 24)} `{LONG}`."""\n',
        f'"""Short:\n\n    {LONG}\n\nShort.\n"""\n',
        f'x = "{LONG}"\n',
        f"x = 1  # noqa: E501 ({LONG})\n",
        f"x = 1  # {FITS}\ny = 2  # {FITS}\n",
        f'"""{FITS[:-10]} e.g. That."""\n',
    ],
)
def test_what_fits_or_is_no_prose_passes(module: str, tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text(module)
    assert list(sentences.too_long(path)) == []
