"""RE2's syntax as a small tree, for the derivation of literals. The parser refuses what it does not know.

The tree is an over-approximation: a node names at least all texts that can match. So `ANYTHING` may replace
any construct, and a pattern may have no tree at all. The matcher is then slower, never wrong.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_REPEAT = re.compile(r"\{(0|[1-9]\d{0,3})(?:(,)(0|[1-9]\d{0,3})?)?\}")
_GROUP = re.compile(r"\((?:\?P?<\w+>|\?([imsU]*)(-[imsU]+)?(:|\)))?")
_HEXADECIMAL = re.compile(r"x(?:\{([0-9A-Fa-f]{1,6})\}|([0-9A-Fa-f]{2}))")
_OCTAL = re.compile(r"0[0-7]{0,2}|[1-7][0-7]{1,2}")
_PROPERTY = re.compile(r"[pP](?:\{\^?\w+\}|\w)")
_POSIX = re.compile(r"\[:\^?\w+:\]")
_CONTROL = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}
_MANY = 5
MAX_NESTING = 100


class NotUnderstood(Exception):
    """The pattern holds a construct that this parser does not know."""


@dataclass(frozen=True, slots=True)
class Character:
    """One character out of `points` (code points); with `fold` in either case."""

    points: frozenset[int]
    fold: bool


@dataclass(frozen=True, slots=True)
class Anything:
    """Any text at all."""


@dataclass(frozen=True, slots=True)
class Series:
    """The parts in sequence; without parts, the empty text."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One of the parts."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """The part at least `low` and at most `high` times (None: without limit)."""

    part: Tree
    low: int
    high: int | None


Tree = Character | Anything | Series | Alternatives | Repeat
ANYTHING = Anything()
EMPTY = Series(())
_SPACE = Character(frozenset(map(ord, "\t\n\f\r ")), fold=False)


@dataclass(frozen=True, slots=True)
class Syntax:
    """The tree of a pattern. `line_bound`: no part of it depends on the ends of the whole text."""

    tree: Tree
    line_bound: bool


def parse(pattern: str) -> Syntax:
    """The tree of a pattern that RE2 accepts. Raises NotUnderstood."""
    reader = _PatternReader(pattern)
    tree = reader.choice(fold=False, depth=0)
    if reader.position != len(pattern):
        raise NotUnderstood(pattern)
    return Syntax(tree, reader.line_bound)


class _PatternReader:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.line_bound = True
        self.fold = False

    def at(self, text: str) -> bool:
        return self.pattern.startswith(text, self.position)

    def take(self, form: re.Pattern[str]) -> re.Match[str] | None:
        match = form.match(self.pattern, self.position)
        if match:
            self.position = match.end()
        return match

    def choice(self, *, fold: bool, depth: int) -> Tree:
        """Alternatives up to the end or to a `)`. A flag set among them holds to the end of the group."""
        if depth > MAX_NESTING:
            raise NotUnderstood(self.pattern)
        self.fold = fold
        parts = [self.series(depth)]
        while self.at("|"):
            self.position += 1
            parts.append(self.series(depth))
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def series(self, depth: int) -> Tree:
        parts: list[Tree] = []
        while self.position < len(self.pattern) and not self.at("|") and not self.at(")"):
            if self.at("\\Q"):
                parts.extend(self.quoted())
                continue
            parts.append(self.repeated(self.atom(depth)))
        return Series(tuple(parts))

    def quoted(self) -> list[Tree]:
        # A quantifier behind \E repeats only the last character. That is rare, so it is refused here.
        end = self.pattern.find("\\E", self.position)
        text = self.pattern[self.position + 2 : end if end >= 0 else None]
        self.position = end + 2 if end >= 0 else len(self.pattern)
        if self.pattern[self.position : self.position + 1] in tuple("*+?{"):
            raise NotUnderstood(self.pattern)
        return [self.character(ord(letter)) for letter in text]

    def repeated(self, part: Tree) -> Tree:
        while self.position < len(self.pattern):
            low: int
            high: int | None
            if self.at("*"):
                low, high = 0, None
                self.position += 1
            elif self.at("+"):
                low, high = 1, None
                self.position += 1
            elif self.at("?"):
                low, high = 0, 1
                self.position += 1
            elif match := self.take(_REPEAT):
                low = int(match.group(1))
                high = low if match.group(2) is None else None
                if match.group(3) is not None:
                    high = int(match.group(3))
            else:
                break
            if self.at("?"):
                self.position += 1
            part = Repeat(part, low, high)
        return part

    def atom(self, depth: int) -> Tree:
        letter = self.pattern[self.position]
        if letter == "(":
            return self.group(depth)
        if letter == "[":
            return self.bracket()
        if letter == "\\":
            self.position += 1
            return self.escape()
        self.position += 1
        if letter == ".":
            return ANYTHING
        return EMPTY if letter in "^$" else self.character(ord(letter))

    def group(self, depth: int) -> Tree:
        match = self.take(_GROUP)
        if match is None or (match.group(0) == "(" and self.at("?")):
            raise NotUnderstood(self.pattern)
        on, off, end = match.group(1) or "", match.group(2) or "", match.group(3)
        if "m" in off:
            self.line_bound = False
        fold = (self.fold or "i" in on) and "i" not in off
        if end == ")":
            self.fold = fold
            return EMPTY
        outside = self.fold
        tree = self.choice(fold=fold, depth=depth + 1)
        self.fold = outside
        if not self.at(")"):
            raise NotUnderstood(self.pattern)
        self.position += 1
        return tree

    def escape(self) -> Tree:
        letter = self.pattern[self.position : self.position + 1]
        if letter in ("b", "B"):
            self.position += 1
            return EMPTY
        if letter in ("A", "z", "C"):
            self.position += 1
            self.line_bound = False
            return ANYTHING if letter == "C" else EMPTY
        if letter and letter in "dDsSwW":
            self.position += 1
            return _SPACE if letter == "s" else ANYTHING
        if self.take(_PROPERTY):
            return ANYTHING
        return self.character(self.escaped_point())

    def escaped_point(self) -> int:
        """The code point of an escape that stands for one character."""
        letter = self.pattern[self.position : self.position + 1]
        if match := self.take(_HEXADECIMAL):
            return int(match.group(1) or match.group(2), 16)
        if match := self.take(_OCTAL):
            return int(match.group(0), 8)
        if letter in _CONTROL:
            self.position += 1
            return _CONTROL[letter]
        if letter and letter.isascii() and not letter.isalnum() and letter != "_":
            self.position += 1
            return ord(letter)
        raise NotUnderstood(self.pattern)

    def bracket(self) -> Tree:
        """A class. A small class of single characters is kept; any other becomes `ANYTHING`."""
        self.position += 1
        known = not self.at("^")
        self.position += not known
        points: set[int] = set()
        first = True
        while first or not self.at("]"):
            first = False
            low = self.class_point()
            if low is None:
                known = False
                continue
            high: int | None = low
            if self.at("-") and not self.pattern.startswith("]", self.position + 1):
                self.position += 1
                high = self.class_point()
            if high is None or high < low:
                raise NotUnderstood(self.pattern)
            if high - low >= _MANY:
                known = False
            else:
                points.update(range(low, high + 1))
        self.position += 1
        if not known or len(points) > _MANY:
            return ANYTHING
        return Character(frozenset(points), self.fold)

    def class_point(self) -> int | None:
        """One end of a range in a class, or None for a whole class (`\\d`, `[:alpha:]`)."""
        if self.position >= len(self.pattern):
            raise NotUnderstood(self.pattern)
        if self.take(_POSIX):
            return None
        letter = self.pattern[self.position]
        self.position += 1
        if letter != "\\":
            return ord(letter)
        following = self.pattern[self.position : self.position + 1]
        if following and following in "dDsSwW":
            self.position += 1
            return None
        return None if self.take(_PROPERTY) else self.escaped_point()

    def character(self, point: int) -> Tree:
        return Character(frozenset((point,)), self.fold)
