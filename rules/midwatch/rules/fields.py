"""Read the known keys of one YAML mapping with their types, and collect every mistake with its place."""

from __future__ import annotations

import difflib
import re
from enum import StrEnum
from typing import TypeVar

from midwatch.rules.errors import LocatedError
from midwatch.rules.model import SourceLocation
from midwatch.streams.strict_yaml import YamlList, YamlMapping, YamlNode, YamlScalar, type_name

Choice = TypeVar("Choice", bound=StrEnum)

_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|d)\Z")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def duration_seconds(text: str) -> float | None:
    """Seconds of "90s", "15m", "1.5h", "500ms" or "2d"; None if the text is not a duration with a unit."""
    match = _DURATION.match(text.strip())
    return float(match.group(1)) * _SECONDS[match.group(2)] if match else None


def describe(node: YamlNode) -> str:
    """The kind of a node in a person's words: "text", "a list", ..."""
    if isinstance(node, YamlScalar):
        return type_name[type(node.value)]
    return "a list" if isinstance(node, YamlList) else "a mapping"


class Fields:
    """Reads one mapping key by key. Call `done()` last: it reports the keys that nobody read.

    A value of a wrong type is reported, and then read as a missing key. So the reading goes on and reports
    all mistakes of a file at once.
    """

    def __init__(self, node: YamlNode, errors: list[LocatedError], what: str) -> None:
        self.errors = errors
        self.what = what
        self.location = node.location
        self.known: list[str] = []
        self.entries: dict[str, tuple[SourceLocation, YamlNode]] = {}
        if isinstance(node, YamlMapping):
            self.entries = node.entries
        else:
            self.complain(
                node.location, f"{what} is {describe(node)}, not a mapping", "Write `key: value` lines."
            )

    def complain(self, location: SourceLocation, what: str, remedy: str = "") -> None:
        """Report a mistake."""
        self.errors.append(LocatedError(location, what, remedy))

    def place(self, key: str) -> SourceLocation:
        """The place of the key's value; without the key, the place of the mapping."""
        return self.entries[key][1].location if key in self.entries else self.location

    def node(self, key: str, *, required: bool = False) -> YamlNode | None:
        """The raw node of a key; an empty value (`key:` or null) counts as missing."""
        self.known.append(key)
        entry = self.entries.get(key)
        if entry is None or (isinstance(entry[1], YamlScalar) and entry[1].value is None):
            if required:
                self.complain(self.location, f"{self.what} has no `{key}`", f"Add `{key}:`.")
            return None
        return entry[1]

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """A text. Refuses a number or true/false, because YAML does not read it as text."""
        node = self.node(key, required=required)
        if node is None:
            return default
        if isinstance(node, YamlScalar) and isinstance(node.value, str):
            return node.value
        self.complain(node.location, f"`{key}` is {describe(node)}, not text", "Put it into quotes.")
        return default

    def flag(self, key: str) -> bool | None:
        """True, false, or None where the key is missing."""
        node = self.node(key)
        if node is None:
            return None
        if isinstance(node, YamlScalar) and isinstance(node.value, bool):
            return node.value
        remedy = "Write `true` or `false`: in YAML 1.2 yes, no, on and off are text."
        self.complain(node.location, f"`{key}` is {describe(node)}, not true or false", remedy)
        return None

    def whole_number(self, key: str, *, required: bool = False) -> int | None:
        """A whole number, or None."""
        node = self.node(key, required=required)
        if node is None:
            return None
        if isinstance(node, YamlScalar) and isinstance(node.value, int) and not isinstance(node.value, bool):
            return node.value
        self.complain(node.location, f"`{key}` is {describe(node)}, not a whole number")
        return None

    def number(self, key: str, *, required: bool = False) -> float | None:
        """A number, whole or not, or None."""
        node = self.node(key, required=required)
        if node is None:
            return None
        value = node.value if isinstance(node, YamlScalar) else None
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return float(value)
        self.complain(node.location, f"`{key}` is {describe(node)}, not a number")
        return None

    def duration(self, key: str, *, required: bool = False) -> float | None:
        """Seconds of a duration with its unit. Refuses a bare number, because its unit is unknown."""
        node = self.node(key, required=required)
        if node is None:
            return None
        value = node.value if isinstance(node, YamlScalar) else None
        seconds = duration_seconds(value) if isinstance(value, str) else None
        if seconds is None or seconds <= 0:
            remedy = "Write a number above 0 and its unit: ms, s, m, h or d, for example `15m`."
            self.complain(node.location, f"`{key}` is not a duration", remedy)
            return None
        return seconds

    def choice(self, key: str, kind: type[Choice]) -> Choice | None:
        """One of the values of an enumeration, or None."""
        node = self.node(key)
        if node is None:
            return None
        value = node.value if isinstance(node, YamlScalar) else None
        if isinstance(value, str) and value in list(kind):
            return kind(value)
        written = repr(value) if isinstance(node, YamlScalar) else describe(node)
        remedy = f"Write one of: {', '.join(kind)}."
        self.complain(node.location, f"`{key}` is {written}", remedy)
        return None

    def items(self, key: str) -> list[YamlNode]:
        """The items of a list; [] where the key is missing."""
        node = self.node(key)
        if node is None:
            return []
        if isinstance(node, YamlList):
            return node.items
        self.complain(
            node.location, f"`{key}` is {describe(node)}, not a list", "Write `- ` before each item."
        )
        return []

    def texts(self, key: str) -> list[tuple[str, SourceLocation]]:
        """The texts of a list, each with its place."""
        found: list[tuple[str, SourceLocation]] = []
        for item in self.items(key):
            if isinstance(item, YamlScalar) and isinstance(item.value, str):
                found.append((item.value, item.location))
            else:
                what = f"an item of `{key}` is {describe(item)}, not text"
                self.complain(item.location, what, "Put it into quotes.")
        return found

    def mapping(self, key: str) -> dict[str, tuple[SourceLocation, YamlNode]]:
        """The entries of a mapping; {} where the key is missing."""
        node = self.node(key)
        if node is None:
            return {}
        if isinstance(node, YamlMapping):
            return node.entries
        self.complain(
            node.location, f"`{key}` is {describe(node)}, not a mapping", "Write `key: value` lines."
        )
        return {}

    def done(self) -> None:
        """Report every key that nobody read, with the known key that it resembles."""
        for key, (location, _) in self.entries.items():
            if key in self.known:
                continue
            close = difflib.get_close_matches(key, self.known, n=1)
            remedy = (
                f"Did you mean `{close[0]}`?" if close else f"Known keys: {', '.join(sorted(self.known))}."
            )
            self.complain(location, f"unknown key `{key}` in {self.what}", remedy)
