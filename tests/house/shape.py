"""The shape of the tree: short modules, telling names, namespaces left open, exceptions with a reason."""

from __future__ import annotations

import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

from house.tree import ROOT, SOURCE_ROOTS, files_of_repository

LONGEST_MODULE = 400
FORBIDDEN_NAMES = frozenset({"util", "utils", "common", "helper", "helpers", "manager", "managers", "misc"})

# Spelled in two parts, so that this file does not find itself.
_REGISTRIES = tuple(
    a + b
    for a, b in (
        ("pypi.", "org/simple"),
        ("files.python", "hosted.org"),
        ("registry.", "npmjs.org"),
        ("repo1.", "maven.org"),
        ("repo.maven.", "apache.org"),
    )
)
_EXCEPTION = re.compile(r"#\s*(?P<what>noqa|type:\s*ignore)(?P<rest>.*)")
_NAMED_RULES = re.compile(r"(?::\s*[A-Z]+[0-9]+(?:[,\s]+[A-Z]+[0-9]+)*|\[[a-z, -]+\])(?P<reason>.*)")
_SHORTEST_REASON = 8


def check(root: Path = ROOT) -> list[str]:
    """One sentence for each thing in the tree that the house does not allow."""
    files = files_of_repository(root)
    problems = [p for path in files for p in _of_file(path, root)]
    return problems + list(_of_namespaces(root))


def _of_file(path: Path, root: Path) -> Iterator[str]:
    name = path.relative_to(root)
    for part in (*name.parts[:-1], name.stem):
        if part.lower() in FORBIDDEN_NAMES:
            yield f"{name}: the name {part!r} says nothing; use the field's own word for what it holds"
    yield from _of_addresses(path, root)
    if path.suffix == ".py":
        lines = len(path.read_bytes().splitlines())
        if lines > LONGEST_MODULE and name.parts[0] != "tests":
            yield f"{name}: {lines} lines; split it by what a reader looks for ({LONGEST_MODULE} at most)"
        yield from _of_exceptions(path, root)


def _of_addresses(path: Path, root: Path) -> Iterator[str]:
    """Paths of this machine and addresses of package registries."""
    text = path.read_text(encoding="utf-8", errors="replace")
    home = f"{Path.home()}/"
    for forbidden in (f"{root}/", home, *_REGISTRIES):
        for number, line in enumerate(text.splitlines(), 1):
            if re.search(rf"(?<![\w.]){re.escape(forbidden)}", line):
                what = "a path of this machine" if forbidden.endswith("/") else "a registry's address"
                yield f"{path.relative_to(root)}:{number}: {forbidden}: {what}"


def _of_exceptions(path: Path, root: Path) -> Iterator[str]:
    """`noqa` and `type: ignore` name their rule and give a reason, behind it or in the comment above."""
    above = ""
    with tokenize.open(path) as source:
        for token in tokenize.generate_tokens(source.readline):
            if token.type != tokenize.COMMENT:
                continue
            place = f"{path.relative_to(root)}:{token.start[0]}"
            explained = above == f"{path}:{token.start[0] - 1}"
            above = f"{path}:{token.start[0]}" if token.line.lstrip().startswith("#") else ""
            if not (exception := _EXCEPTION.search(token.string)):
                continue
            named = _NAMED_RULES.match(exception["rest"])
            if not named:
                yield f"{place}: {exception['what']} names no rule"
            elif len(named["reason"].strip(" #-:")) < _SHORTEST_REASON and not explained:
                yield f"{place}: {exception['what']} gives no reason"


def _of_namespaces(root: Path) -> Iterator[str]:
    for name in SOURCE_ROOTS:
        for closed in (root / name / "__init__.py", root / name / "midwatch" / "__init__.py"):
            if closed.exists():
                yield f"{closed.relative_to(root)}: closes the midwatch namespace for the other three folders"
        package = root / name / "midwatch" / name
        if not (package / "py.typed").exists():
            yield f"{package.relative_to(root)}: no py.typed, so users' type checkers ignore our types"
