"""Strict YAML for settings, rules and policies. Pure.

Every value keeps its place in the file. Whatever YAML would guess at is an error. Aliases, anchors, tags,
merge keys, duplicate keys and a second document are errors. Size and depth have limits. Scalars mean what
YAML 1.2 says: `on`, `off`, `yes`, `no` and `12:30:00` are strings, `1e3` is a number. The tree is built from
the parser's events, so a deep or self-referring file cannot exhaust memory or stack.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

import yaml

MAX_BYTES = 1 << 20
MAX_DEPTH = 16
MAX_VALUES = 200_000

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORBIDDEN_SHOWN = 20
_LARGEST_PLAIN = 2**63

type_name = {
    type(None): "nothing",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
}

ScalarValue = str | int | float | bool | None

_WORDS: dict[str, ScalarValue] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBERS: tuple[tuple[re.Pattern[str], Callable[[str], int | float]], ...] = (
    (re.compile(r"[-+]?[0-9]{1,100}\Z"), int),
    (re.compile(r"0o[0-7]{1,100}\Z"), lambda text: int(text, 8)),
    (re.compile(r"0x[0-9a-fA-F]{1,100}\Z"), lambda text: int(text, 16)),
    (re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?\Z"), float),
)


@dataclass(frozen=True, slots=True, order=True)
class SourceLocation:
    """A place in a user's file. Line and column count from 1. Columns are characters, not bytes."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True, slots=True)
class LocatedError:
    """One mistake in a file: its place, the mistake, and what to write instead."""

    location: SourceLocation
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        advice = f"\n  {self.remedy}" if self.remedy else ""
        return f"{self.location}: {self.what}{advice}"


@dataclass(slots=True)
class YamlScalar:
    """A single value and its place."""

    value: ScalarValue
    location: SourceLocation


@dataclass(slots=True)
class YamlList:
    """A list and its place."""

    location: SourceLocation
    items: list[YamlNode] = field(default_factory=list)


@dataclass(slots=True)
class YamlMapping:
    """Keys with their places, and their values. Keys are strings, in the order of the file."""

    location: SourceLocation
    entries: dict[str, tuple[SourceLocation, YamlNode]] = field(default_factory=dict)


YamlNode = YamlScalar | YamlList | YamlMapping


def read_yaml(
    file: str, data: bytes, errors: list[LocatedError], *, may_be_empty: bool = False
) -> YamlNode | None:
    """The tree of one file, or None if it has no usable tree. Appends every mistake to `errors`.

    Reading stops after a mistake in encoding, size or syntax, and at a second document. After any other
    mistake it goes on.
    """
    return _Builder(file, errors, may_be_empty=may_be_empty).build(data)


def plain(node: YamlNode) -> object:
    """The tree as dicts, lists and scalars, without places. A whole number beyond 64 bits becomes a float."""
    if isinstance(node, YamlScalar):
        value = node.value
        return float(value) if isinstance(value, int) and abs(value) >= _LARGEST_PLAIN else value
    if isinstance(node, YamlList):
        return [plain(item) for item in node.items]
    return {key: plain(value) for key, (_, value) in node.entries.items()}


def plain_scalar(text: str) -> ScalarValue:
    """The value of an unquoted scalar in YAML 1.2 (core schema)."""
    if text in _WORDS:
        return _WORDS[text]
    for form, convert in _NUMBERS:
        if form.match(text):
            return convert(text)
    return text


class _Mark(Protocol):
    line: int
    column: int


class _Builder:
    def __init__(self, file: str, errors: list[LocatedError], *, may_be_empty: bool) -> None:
        self.file = file
        self.errors = errors
        self.may_be_empty = may_be_empty

    def complain(self, location: SourceLocation, what: str, remedy: str = "") -> None:
        self.errors.append(LocatedError(location, what, remedy))

    def place(self, mark: _Mark | None) -> SourceLocation:
        return (
            SourceLocation(self.file, mark.line + 1, mark.column + 1) if mark else SourceLocation(self.file)
        )

    def build(self, data: bytes) -> YamlNode | None:
        if len(data) > MAX_BYTES:
            self.complain(
                SourceLocation(self.file),
                f"the file has {len(data)} bytes, more than {MAX_BYTES}",
                "Split the file and use `include:`.",
            )
            return None
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            before = data[: error.start]
            line = before.count(b"\n") + 1
            column = len(before[before.rfind(b"\n") + 1 :].decode("utf-8", "replace")) + 1
            self.complain(
                SourceLocation(self.file, line, column),
                f"byte 0x{data[error.start]:02x} is not UTF-8",
                "Save the file as UTF-8.",
            )
            return None
        # libyaml reports only the first such character, with its byte instead of its column.
        forbidden = [*_FORBIDDEN.finditer(text)]
        for found in forbidden[:_FORBIDDEN_SHOWN]:
            position = found.start()
            place = SourceLocation(
                self.file, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position)
            )
            mistake = f"character {found[0]!r} is not allowed in YAML"
            self.complain(place, mistake, "Write it as an escape in double quotes.")
        if forbidden:
            return None
        try:
            return self.document(text)
        except yaml.MarkedYAMLError as error:
            self.complain(
                self.place(error.problem_mark or error.context_mark),
                f"not valid YAML: {error.problem or error.context}",
                "Put patterns, and text with `: `, `#` or a leading `*`, `&`, `%` or `@`, into single quotes;"
                " indent with blanks, not tabs.",
            )
        return None

    def document(self, text: str) -> YamlNode | None:
        tree = _Tree(self)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = values = 0
        for event in yaml.parse(text, Loader=loader):
            location = self.place(event.start_mark)
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.complain(location, "a second document in one file", "Put it into a file of its own.")
                    break
            elif isinstance(event, yaml.CollectionEndEvent):
                tree.close()
            elif isinstance(event, yaml.NodeEvent):
                values += 1
                tree.add(self.node(event, location))
                if values > MAX_VALUES or len(tree.open) > MAX_DEPTH:
                    mistake = f"more than {MAX_VALUES} values, or nested deeper than {MAX_DEPTH} levels"
                    self.complain(location, mistake, "Split or flatten the file.")
                    return None
        if tree.root is None and not self.may_be_empty:
            self.complain(
                SourceLocation(self.file), "the file is empty", "Write `version: 1` and the content."
            )
        return tree.root

    def node(self, event: yaml.NodeEvent, location: SourceLocation) -> YamlNode:
        if isinstance(event, yaml.AliasEvent):
            self.complain(location, f"alias *{event.anchor}", "Write the value out: aliases are not allowed.")
            return YamlScalar(None, location)
        if event.anchor is not None:
            self.complain(
                location, f"anchor &{event.anchor}", "Remove it: anchors and aliases are not allowed."
            )
        tag: str | None = getattr(event, "tag", None)
        if tag is not None:
            self.complain(location, f"tag {tag!r}", "Remove it: tags are not allowed.")
        if isinstance(event, yaml.SequenceStartEvent):
            return YamlList(location)
        if isinstance(event, yaml.ScalarEvent):
            value: str = event.value
            return YamlScalar(plain_scalar(value) if not event.style else value, location)
        return YamlMapping(location)

    def key(self, node: YamlNode) -> tuple[str, SourceLocation]:
        if not isinstance(node, YamlScalar):
            self.complain(node.location, "a key that is a list or a mapping", "Keys are plain text.")
            return ("", node.location)
        if not isinstance(node.value, str):
            self.complain(
                node.location,
                f"a key that is {type_name[type(node.value)]}, not text",
                "Put the key into quotes.",
            )
        elif node.value == "<<":
            self.complain(node.location, "a merge key <<", "Write the keys out: merging is not allowed.")
        return (str(node.value), node.location)

    def enter(self, parent: YamlMapping, key: tuple[str, SourceLocation], node: YamlNode) -> None:
        name, location = key
        if name in parent.entries:
            first = parent.entries[name][0]
            self.complain(
                location,
                f"key {name!r} appears twice in one mapping, first on line {first.line}",
                "Keep one of them.",
            )
            return
        parent.entries[name] = (location, node)


class _Tree:
    """Puts nodes into their parents, in the order of the parser's events."""

    def __init__(self, builder: _Builder) -> None:
        self.builder = builder
        self.root: YamlNode | None = None
        self.open: list[YamlList | YamlMapping] = []
        self.keys: list[tuple[str, SourceLocation] | None] = []

    def add(self, node: YamlNode) -> None:
        parent = self.open[-1] if self.open else None
        if isinstance(parent, YamlMapping):
            key = self.keys[-1]
            if key is None:
                self.keys[-1] = self.builder.key(node)
            else:
                self.builder.enter(parent, key, node)
                self.keys[-1] = None
        elif isinstance(parent, YamlList):
            parent.items.append(node)
        else:
            self.root = node
        if not isinstance(node, YamlScalar):
            self.open.append(node)
            self.keys.append(None)

    def close(self) -> None:
        self.open.pop()
        self.keys.pop()
