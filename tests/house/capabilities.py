"""What midwatch can do, and the tests that show it: from docs/capabilities.yaml and the marks in tests/.

A test says what it shows with `@pytest.mark.capability("S001-34", ...)`. The marks are read from the
source, so the page depends on nothing that is installed or runs.
"""

from __future__ import annotations

import ast
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

import yaml

from house.tree import ROOT, files_of_repository

CATALOGUE = ROOT / "docs" / "capabilities.yaml"
PAGE = ROOT / "docs" / "capabilities.md"

_INTRODUCTION = """\
# What midwatch can do

Generated from the tests by `make capabilities`: do not edit. Each line is one capability; beside it stand the
tests that show it, or "not yet".
"""


@dataclass(frozen=True, slots=True)
class Group:
    """One table of the page: capabilities by id, in the order of the catalogue."""

    title: str
    lines: Mapping[str, str]


@dataclass(frozen=True, slots=True, order=True)
class Shown:
    """A test that shows a capability; `file` is relative to the repository."""

    file: str
    test: str


class WrongMark(Exception):
    """A capability mark that names no id, an unknown id, or stands where pytest runs nothing."""


def catalogue(path: Path = CATALOGUE) -> list[Group]:
    """The groups of the catalogue; their ids are unique (PyYAML would let the last of two win)."""
    text = path.read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 it is a SafeLoader
    groups = [Group(group["title"], group["lines"]) for group in document.values()]
    seen: set[str] = set()
    for group in groups:
        if twice := seen & group.lines.keys():
            raise WrongMark(f"{path.name}: {', '.join(sorted(twice))}: stands there twice")
        seen |= group.lines.keys()
    return groups


def known_ids(path: Path = CATALOGUE) -> frozenset[str]:
    """Every id that a mark may name."""
    return frozenset(capability for group in catalogue(path) for capability in group.lines)


def marks_in(source: str, file: str) -> Iterator[tuple[str, Shown]]:
    """(id, test) for each capability mark in the text of one test file, in the order of the text."""
    tree = ast.parse(source)
    named = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    reader = _Reader(file, named)
    yield from reader.marks_below(tree, prefix="", inherited=())
    for node in ast.walk(tree):
        if _is_mark(node) and node not in reader.seen:
            raise WrongMark(f"{file}:{node.lineno}: no test of this file bears this capability")


def shown_by(files: Mapping[str, str], known: frozenset[str]) -> dict[str, list[Shown]]:
    """The tests of each id, sorted, from test files as {path: text}. Raises WrongMark for an unknown id."""
    shown: defaultdict[str, set[Shown]] = defaultdict(set)
    for file, source in files.items():
        for capability, test in marks_in(source, file):
            if capability not in known:
                raise WrongMark(f"{file}: {test.test}: docs/capabilities.yaml has no {capability}")
            shown[capability].add(test)
    return {capability: sorted(tests) for capability, tests in shown.items()}


def render(groups: list[Group], shown: Mapping[str, list[Shown]], *, folder: str = "docs") -> str:
    """The Markdown page, with links relative to `folder`."""
    total = sum(len(group.lines) for group in groups)
    parts = [_INTRODUCTION, f"{len(shown)} of {total} are shown by a test.\n"]
    for group in groups:
        rows = [
            f"| {key} | {line} | {_tests(shown.get(key, []), folder)} |" for key, line in group.lines.items()
        ]
        parts.append(
            "\n".join([f"## {group.title}\n", "| id | what | shown by |", "|---|---|---|", *rows, ""])
        )
    return "\n".join(parts)


def current_page() -> str:
    """The page as the tree stands now."""
    groups = catalogue()
    return render(groups, shown_by(_test_files(), known_ids()))


def check() -> list[str]:
    """One sentence when the page is stale or a mark is wrong, else nothing."""
    try:
        page = current_page()
    except WrongMark as wrong:
        return [str(wrong)]
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page:
        return [f"{PAGE.relative_to(ROOT)} is stale: make capabilities"]
    return []


def _test_files() -> dict[str, str]:
    files = (path.relative_to(ROOT) for path in files_of_repository())
    tests = (f for f in files if f.parts[0] == "tests" and f.name.startswith("test_") and f.suffix == ".py")
    return {f.as_posix(): (ROOT / f).read_text(encoding="utf-8") for f in tests}


def _tests(tests: list[Shown], folder: str) -> str:
    return ", ".join(f"[{t.test}]({os.path.relpath(t.file, folder)})" for t in tests) or "not yet"


def _is_mark(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "capability"


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one test file. `named`: the values of its names, for lists of `pytest.param` that stand apart."""

    file: str
    named: Mapping[str, ast.expr]
    seen: set[ast.Attribute] = field(default_factory=set)

    def marks_below(
        self, node: ast.Module | ast.ClassDef, *, prefix: str, inherited: tuple[str, ...]
    ) -> Iterator[tuple[str, Shown]]:
        own = inherited + tuple(
            capability
            for statement in node.body
            if isinstance(statement, ast.Assign)
            and any(
                isinstance(target, ast.Name) and target.id == "pytestmark" for target in statement.targets
            )
            for capability in self._ids(statement.value)
        )
        for statement in node.body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    ids = [capability for d in statement.decorator_list for capability in self._ids(d)]
                    if statement.name.startswith("test_"):
                        for capability in (*own, *ids):
                            yield capability, Shown(self.file, prefix + statement.name)
                    elif ids:
                        raise WrongMark(
                            f"{self.file}:{statement.lineno}: {statement.name} is no test, "
                            "yet it bears a capability"
                        )
                case ast.ClassDef():
                    ids = [capability for d in statement.decorator_list for capability in self._ids(d)]
                    yield from self.marks_below(
                        statement, prefix=f"{prefix}{statement.name}.", inherited=(*own, *ids)
                    )

    def _ids(self, expression: ast.expr) -> Iterator[str]:
        """The ids of the capability marks in a decorator or `pytestmark`, `pytest.param` included."""
        nodes = list(ast.walk(expression))
        for name in [node.id for node in nodes if isinstance(node, ast.Name)]:
            if name in self.named:
                nodes += ast.walk(self.named[name])
        for node in filter(_is_mark, nodes):
            self.seen.add(node)
            call = next((c for c in nodes if isinstance(c, ast.Call) and c.func is node), None)
            if call is None or not call.args or call.keywords:
                raise WrongMark(
                    f'{self.file}:{node.lineno}: a capability mark names its ids: capability("C-1")'
                )
            for argument in call.args:
                if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                    raise WrongMark(
                        f"{self.file}:{argument.lineno}: a capability mark holds plain strings only"
                    )
                yield argument.value


class _StrictLoader(yaml.SafeLoader):
    """YAML without duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := {key for key in keys if keys.count(key) > 1}:
            place = f"{CATALOGUE.name}:{node.start_mark.line + 1}"
            raise WrongMark(f"{place}: {', '.join(sorted(twice))}: given twice")
        return super().construct_mapping(node, deep)
