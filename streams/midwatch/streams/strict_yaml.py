"""Strict YAML with places: what stands in the file is what is meant, or it is an error with its line.

Refused: aliases, anchors, tags, merge keys, duplicate keys, further documents, files beyond the limits of
size, depth and count. Scalars are YAML 1.2's: `on`, `yes` and `12:30` are text, `1e3` is a number.
The tree grows from the parser's events with a stack of our own, so no file can exhaust memory or recursion.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Protocol

import yaml

from midwatch.streams.errors import ConfigurationError

SIZE_LIMIT = 1 << 20
DEPTH_LIMIT = 16
NODE_LIMIT = 200_000

YamlValue = str | int | float | bool | None

_WORDS: dict[str, YamlValue] = dict.fromkeys(("", "~", "null", "Null", "NULL"))
_WORDS |= dict.fromkeys(("true", "True", "TRUE"), True)
_WORDS |= dict.fromkeys(("false", "False", "FALSE"), False)
_NUMBER = re.compile(
    r"(?P<octal>0o[0-7]{1,100})|(?P<hex>0x[0-9a-fA-F]{1,100})|(?P<integer>[-+]?[0-9]{1,100})"
    r"|(?P<float>[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,3})?)"
    r"|(?P<special>[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))"
)

_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_FORBIDDEN_SHOWN = 20


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """Where something stands; line and column begin at 1, line 0 means the file as a whole."""

    file: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}" if self.line else self.file


@dataclass(frozen=True, slots=True)
class Mistake:
    """One thing wrong in a file or a variable: the place, what it is, what to write instead."""

    where: Place | str
    what: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.what}" + (f"\n  {self.remedy}" if self.remedy else "")


class Mistakes(ConfigurationError):
    """All that is wrong at once. `mistakes` keeps them apart; the text lists them one behind the other."""

    def __init__(self, mistakes: list[Mistake]) -> None:
        self.mistakes = tuple(sorted(mistakes, key=_order))
        first = self.mistakes[0]
        super().__init__(first.what, where=str(first.where), remedy=first.remedy)

    def __str__(self) -> str:
        return "\n".join(str(mistake) for mistake in self.mistakes)


def _order(mistake: Mistake) -> Place:
    return mistake.where if isinstance(mistake.where, Place) else Place("")


@dataclass(frozen=True, slots=True)
class YamlScalar:
    """One value; a quoted one is always text."""

    place: Place
    value: YamlValue


@dataclass(frozen=True, slots=True)
class YamlSequence:
    """Values in order."""

    place: Place
    items: list[YamlNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class YamlEntry:
    """A key's own place and the value below it."""

    place: Place
    node: YamlNode


@dataclass(frozen=True, slots=True)
class YamlMapping:
    """Entries by key, in the order of the file; keys are text."""

    place: Place
    entries: dict[str, YamlEntry] = field(default_factory=dict)


YamlNode = YamlScalar | YamlSequence | YamlMapping


def core_scalar(text: str) -> YamlValue:
    """What an unquoted scalar means in YAML 1.2's core schema."""
    if text in _WORDS:
        return _WORDS[text]
    match = _NUMBER.fullmatch(text)
    if match is None:
        return text
    if match["special"]:
        return float(text.replace(".", ""))
    if match["float"]:
        return float(text)
    return int(text, 0) if match["octal"] or match["hex"] else int(text)


def read_yaml(file: str, content: bytes, mistakes: list[Mistake]) -> YamlNode | None:
    """The tree of one file; None if it is empty or cannot be parsed.

    Appends all that is wrong to `mistakes`. After an error of syntax the rest of the file is unread; after
    any other it is read on, so that one run shows every mistake.
    """
    if len(content) > SIZE_LIMIT:
        mistakes.append(Mistake(file, f"{len(content)} bytes, more than {SIZE_LIMIT}", "split the file"))
        return None
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        start = content.rfind(b"\n", 0, error.start) + 1
        column = len(content[start : error.start].decode("utf-8", "replace")) + 1
        place = Place(file, content.count(b"\n", 0, error.start) + 1, column)
        mistakes.append(
            Mistake(place, f"byte 0x{content[error.start]:02x} is not UTF-8", "save the file as UTF-8")
        )
        return None
    # Looked for here because libyaml names such a character by its byte, not its column, and only the first.
    forbidden = [_place_of(file, text, found.start()) for found in _FORBIDDEN.finditer(text)]
    if forbidden:
        what, remedy = "a character that YAML forbids", "remove it, or escape it in double quotes"
        mistakes += [Mistake(place, what, remedy) for place in forbidden[:_FORBIDDEN_SHOWN]]
        return None
    tree = _Tree(file, mistakes)
    try:
        for event in yaml.parse(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if not tree.take(event):
                return None
    except yaml.MarkedYAMLError as error:
        place = tree.place(error.problem_mark or error.context_mark)
        remedy = "indent with blanks only; put text with `: `, `#` or a leading `*`, `&`, `%`, `@` in quotes"
        mistakes.append(Mistake(place, f"not YAML: {error.problem or error.context}", remedy))
        return None
    return tree.root


def _place_of(file: str, text: str, position: int) -> Place:
    return Place(file, text.count("\n", 0, position) + 1, position - text.rfind("\n", 0, position))


class _Mark(Protocol):
    """Where the parser stands; both of its versions have one of their own."""

    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...


@dataclass(slots=True)
class _Open:
    """A collection that has begun and not ended; `key` waits for its value, its name is None if unusable."""

    node: YamlSequence | YamlMapping
    key: tuple[str | None, Place] | None = None


class _Tree:
    """Builds the tree from events; says no when it has grown beyond a limit."""

    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        self.root: YamlNode | None = None
        self._file = file
        self._mistakes = mistakes
        self._open: list[_Open] = []
        self._nodes = 0
        self._documents = 0

    def place(self, mark: _Mark | None) -> Place:
        return Place(self._file, mark.line + 1, mark.column + 1) if mark else Place(self._file)

    def take(self, event: yaml.Event) -> bool:
        """Whether to go on."""
        place = self.place(event.start_mark)
        if isinstance(event, yaml.DocumentStartEvent):
            self._documents += 1
            if self._documents > 1:
                return self._stop(place, "a second document begins here", "keep one document in a file")
        elif isinstance(event, yaml.CollectionEndEvent):
            self._open.pop()
        elif isinstance(event, yaml.NodeEvent):
            self._nodes += 1
            if self._nodes > NODE_LIMIT:
                return self._stop(place, f"more than {NODE_LIMIT} values", "split the file")
            node = self._node(event, place)
            self._attach(node)
            if not isinstance(node, YamlScalar):
                self._open.append(_Open(node))
                if len(self._open) > DEPTH_LIMIT:
                    return self._stop(place, f"nested more than {DEPTH_LIMIT} deep", "flatten the file")
        return True

    def _stop(self, place: Place, what: str, remedy: str) -> bool:
        self._wrong(place, what, remedy)
        return False

    def _wrong(self, place: Place, what: str, remedy: str) -> None:
        self._mistakes.append(Mistake(place, what, remedy))

    def _node(self, event: yaml.NodeEvent, place: Place) -> YamlNode:
        if isinstance(event, yaml.AliasEvent):
            self._wrong(place, f"the alias *{event.anchor}", "write the value out: aliases are not read")
            return YamlScalar(place, None)
        if event.anchor is not None:
            self._wrong(place, f"the anchor &{event.anchor}", "remove it: aliases are not read")
        if isinstance(event, yaml.CollectionStartEvent | yaml.ScalarEvent) and event.tag is not None:
            self._wrong(place, f"the tag {event.tag}", "remove it: tags are not read")
        if isinstance(event, yaml.SequenceStartEvent):
            return YamlSequence(place)
        if not isinstance(event, yaml.ScalarEvent):
            return YamlMapping(place)
        unquoted = event.implicit[0]
        return YamlScalar(place, core_scalar(event.value) if unquoted else event.value)

    def _attach(self, node: YamlNode) -> None:
        if not self._open:
            self.root = node
            return
        top = self._open[-1]
        if isinstance(top.node, YamlSequence):
            top.node.items.append(node)
        elif top.key is None:
            top.key = self._key(node)
        else:
            (name, place), top.key = top.key, None
            if name is None:
                return
            if name in top.node.entries:
                first = top.node.entries[name].place.line
                self._wrong(place, f"the key {name!r} again, first on line {first}", "keep one of the two")
            else:
                top.node.entries[name] = YamlEntry(place, node)

    def _key(self, node: YamlNode) -> tuple[str | None, Place]:
        if not isinstance(node, YamlScalar):
            self._wrong(node.place, "a list or mapping as a key", "a key is plain text")
            return None, node.place
        if node.value == "<<":
            self._wrong(node.place, "the merge key <<", "write the keys out: merging is not done")
        elif not isinstance(node.value, str):
            self._wrong(node.place, f"the key {node.value!r} is not text", "put the key in quotes")
        return str(node.value), node.place
