"""What midwatch can do, and the tests that show it: from docs/capabilities.yaml and the marks in tests/.

A test says what it shows with `@pytest.mark.capability("S001-34", ...)`. A mark in a `pytest.param` counts
for this parameter alone, and the page names it. The marks are read from the source, so the page depends on
nothing that is installed or runs.

A test that bears `skip` or `skipif` does not count, because a plain clone skips it. It counts if the mark
`third_party` names the data of others that it needs; the page then says so.
"""

from __future__ import annotations

import ast
import os
import re
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

Generated from the tests by `make capabilities`: do not edit. Each line is one capability with its state and
the tests that show it. In square brackets stands the parameter of a test that shows it.

- shown: a test shows all of it.
- in part: a test shows some of it. The line says what is missing.
- not yet: no test shows it.

A test counts only if a plain clone runs it. There are two exceptions, and both stand beside the test: data of
others that this repository may not hold, and a SLURM on the machine.
"""
_NEEDS_SLURM = "needs a SLURM"


@dataclass(frozen=True, slots=True)
class Group:
    """One table of the page: capabilities by id, in the order of the catalogue."""

    title: str
    lines: Mapping[str, Line]


@dataclass(frozen=True, slots=True)
class Line:
    """One capability. `missing`: what its tests do not show, "" if they show all of it."""

    what: str
    missing: str = ""


@dataclass(frozen=True, slots=True, order=True)
class Shown:
    """A test that shows a capability; `file` is relative to the repository.

    `parameter`: the parameter that bears the mark, "" if all of them do. `needs`: what a plain clone lacks.
    """

    file: str
    test: str
    parameter: str = ""
    needs: str = ""

    def link(self, folder: str) -> str:
        """The test as a Markdown link relative to `folder`."""
        parameter = f" \\[{self.parameter}\\]" if self.parameter else ""
        needs = f" ({self.needs})" if self.needs else ""
        return f"[{self.test}{parameter}]({os.path.relpath(self.file, folder)}){needs}"


class WrongMark(Exception):
    """A capability mark that names no id, an unknown id, or stands where pytest runs nothing."""


def catalogue(path: Path = CATALOGUE) -> list[Group]:
    """The groups of the catalogue; their ids are unique (PyYAML would let the last of two win)."""
    text = path.read_text(encoding="utf-8")
    document: dict[str, Any] = yaml.load(text, Loader=_StrictLoader)  # noqa: S506 it is a SafeLoader
    groups = [Group(group["title"], _lines(group["lines"])) for group in document.values()]
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
    """(id, test) for each capability mark in one test file, in the order of the text.

    Leaves out tests that a plain clone skips.
    """
    tree = ast.parse(source)
    named = {
        target.id: statement.value
        for statement in tree.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    reader = _Reader(file, named)
    yield from reader.marks_below(tree, prefix="", inherited=_Marks())
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
    lines = {key: line for group in groups for key, line in group.lines.items()}
    states = {key: _state(key, line, shown.get(key, [])) for key, line in lines.items()}
    whole = sum(state == "shown" for state in states.values())
    none = sum(state == "not yet" for state in states.values())
    counts = f"Of {len(lines)}, {whole} are shown, {len(lines) - whole - none} in part, {none} not yet.\n"
    parts = [_INTRODUCTION, counts]
    for group in groups:
        rows = [
            f"| {key} | {line.what} | {states[key]} | {_tests(shown.get(key, []), folder)} |"
            for key, line in group.lines.items()
        ]
        head = ["| id | what | state | shown by |", "|---|---|---|---|"]
        parts.append("\n".join([f"## {group.title}\n", *head, *rows, ""]))
    return "\n".join(parts)


def _state(key: str, line: Line, tests: list[Shown]) -> str:
    if not tests:
        if line.missing:
            raise WrongMark(f"docs/capabilities.yaml: {key}: no test shows it, yet only a part is missing")
        return "not yet"
    return f"in part: {line.missing}" if line.missing else "shown"


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
    return ", ".join(test.link(folder) for test in tests)


def _lines(document: Mapping[str, str | Mapping[str, str]]) -> dict[str, Line]:
    """Each line is a text, or a mapping of `what` and `missing`."""
    lines: dict[str, Line] = {}
    for key, line in document.items():
        if isinstance(line, str):
            lines[key] = Line(line)
        elif line.keys() == {"what", "missing"}:
            lines[key] = Line(line["what"], line["missing"])
        else:
            raise WrongMark(f"docs/capabilities.yaml: {key}: a mapping holds `what` and `missing`")
    return lines


def _is_mark(node: ast.AST) -> TypeGuard[ast.Attribute]:
    return isinstance(node, ast.Attribute) and node.attr == "capability"


def _of_platform(node: ast.Call) -> bool:
    """Whether a `skipif` asks for the operating system only: the supported one runs the test."""
    return bool(node.args) and "sys.platform" in ast.unparse(node.args[0])


@dataclass(frozen=True, slots=True)
class _Marks:
    """The marks of one module, class or function: (id, parameter) of the capabilities, and what it needs."""

    capabilities: tuple[tuple[str, str], ...] = ()
    skipped: bool = False
    needs: tuple[str, ...] = ()

    def __add__(self, other: _Marks) -> _Marks:
        return _Marks(
            self.capabilities + other.capabilities,
            self.skipped or other.skipped,
            self.needs + other.needs,
        )

    def shown(self, file: str, test: str) -> Iterator[tuple[str, Shown]]:
        """(id, test), or nothing if a plain clone skips the test."""
        if self.skipped and not any(need != _NEEDS_SLURM for need in self.needs):
            return
        for capability, parameter in self.capabilities:
            yield capability, Shown(file, test, parameter, ", ".join(dict.fromkeys(self.needs)))


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one test file. `named`: the values of its names, for lists of `pytest.param` that stand apart."""

    file: str
    named: Mapping[str, ast.expr]
    seen: set[ast.Attribute] = field(default_factory=set)

    def marks_below(
        self, node: ast.Module | ast.ClassDef, *, prefix: str, inherited: _Marks
    ) -> Iterator[tuple[str, Shown]]:
        own = inherited
        for statement in node.body:
            if isinstance(statement, ast.Assign) and any(
                isinstance(target, ast.Name) and target.id == "pytestmark" for target in statement.targets
            ):
                own += self._marks([statement.value])
        for statement in node.body:
            match statement:
                case ast.FunctionDef() | ast.AsyncFunctionDef():
                    marks = self._marks(statement.decorator_list)
                    if statement.name.startswith("test_"):
                        yield from (own + marks).shown(self.file, prefix + statement.name)
                    elif marks.capabilities:
                        raise WrongMark(
                            f"{self.file}:{statement.lineno}: {statement.name} is no test, "
                            "yet it bears a capability"
                        )
                case ast.ClassDef():
                    yield from self.marks_below(
                        statement,
                        prefix=f"{prefix}{statement.name}.",
                        inherited=own + self._marks(statement.decorator_list),
                    )

    def _marks(self, expressions: list[ast.expr]) -> _Marks:
        """The marks in decorators or `pytestmark`, `pytest.param` included."""
        found = _Marks()
        for expression in expressions:
            nodes = list(ast.walk(expression))
            for name in [node.id for node in nodes if isinstance(node, ast.Name)]:
                if name in self.named:
                    nodes += ast.walk(self.named[name])
            parameters = self._parameters(nodes)
            capabilities = tuple(
                (capability, parameters.get(mark, ""))
                for mark in filter(_is_mark, nodes)
                for capability in self._ids(mark, nodes)
            )
            found += _Marks(capabilities, *self._skips(expression))
        return found

    def _parameters(self, nodes: list[ast.AST]) -> dict[ast.AST, str]:
        """The name of the parameter that bears each mark."""
        return {
            inner: self._name_of(node)
            for node in nodes
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.param"
            for inner in ast.walk(node)
            if _is_mark(inner)
        }

    def _name_of(self, parameter: ast.Call) -> str:
        """The parameter's id, or its plain values as pytest joins them."""
        given = next((word.value for word in parameter.keywords if word.arg == "id"), None)
        values = [given] if given is not None else parameter.args
        plain = all(isinstance(value, ast.Constant) for value in values)
        name = "-".join(str(ast.literal_eval(value)) for value in values) if plain else ""
        if not re.fullmatch(r"[^|\[\]\n]{1,60}", name):
            raise WrongMark(f"{self.file}:{parameter.lineno}: a parameter with a capability needs an id")
        return name

    def _skips(self, expression: ast.expr) -> tuple[bool, tuple[str, ...]]:
        """Whether a plain clone skips the test, and what it needs, by the marks outside of parameters."""
        skipped, needs = False, tuple[str, ...]()
        for mark in expression.elts if isinstance(expression, ast.List | ast.Tuple) else [expression]:
            call = mark if isinstance(mark, ast.Call) else None
            match ast.unparse(call.func if call else mark).removeprefix("pytest.mark."):
                case "slurm":
                    needs += (_NEEDS_SLURM,)
                case "skip":
                    skipped = True
                case "skipif" if call and not _of_platform(call):
                    skipped = True
                case "third_party":
                    data = call.args[0] if call and len(call.args) == 1 else None
                    if not (isinstance(data, ast.Constant) and isinstance(data.value, str)):
                        raise WrongMark(
                            f"{self.file}:{mark.lineno}: third_party names the data as plain text"
                        )
                    needs += (f"needs {data.value}",)
        return skipped, needs

    def _ids(self, node: ast.Attribute, nodes: list[ast.AST]) -> Iterator[str]:
        """The ids that one capability mark names."""
        self.seen.add(node)
        call = next((c for c in nodes if isinstance(c, ast.Call) and c.func is node), None)
        if call is None or not call.args or call.keywords:
            raise WrongMark(f'{self.file}:{node.lineno}: a capability mark names its ids: capability("C-1")')
        for argument in call.args:
            if not (isinstance(argument, ast.Constant) and isinstance(argument.value, str)):
                raise WrongMark(f"{self.file}:{argument.lineno}: a capability mark holds plain strings only")
            yield argument.value


class _StrictLoader(yaml.SafeLoader):
    """YAML without duplicate keys."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value]
        if twice := {key for key in keys if keys.count(key) > 1}:
            place = f"{CATALOGUE.name}:{node.start_mark.line + 1}"
            raise WrongMark(f"{place}: {', '.join(sorted(twice))}: given twice")
        return super().construct_mapping(node, deep)
