"""The matcher finds the rules in the lines of a chunk, exactly as RE2's search does for each line and rule.

It scans a chunk for triggers, and searches only lines with a trigger, each with one set of all rules. For
rules without a trigger it first searches the whole chunk, with a set whose matches stay within a line. Where
it searches every line and many are alike, it remembers what their forms hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from midwatch.rules.matching.hits import CompiledRule, Matches, Row
from midwatch.rules.matching.known_forms import KnownForms, are_alike
from midwatch.rules.matching.rule_finder import FindRules
from midwatch.rules.matching.scanner import Find
from midwatch.streams.lines.forms import form_of

SMALL_CHUNK = 2048
"""Bytes below which scanning for triggers costs more than it saves."""
PROBE = 1024
"""Bytes of a sample at each of a few places of a chunk.

Where most lines of the samples hold a trigger, the matcher searches every line.
"""
_PROBES = 4


@dataclass(frozen=True, slots=True)
class Machinery:
    """The compiled parts that matching needs; only the compiler makes them.

    `find_rules` gives the indexes of all rules found in a line, in no order. `known_forms` finds the same in
    many lines that are alike. `find_triggers` gives the sorted offsets of triggers in a text. `gates` search
    a whole text for rules without triggers. `every_line` is True if there is a rule that no gate can search
    for; every line is then searched.
    """

    compiled: tuple[CompiledRule, ...]
    find_rules: FindRules
    known_forms: KnownForms
    find_triggers: Find
    gates: tuple[Callable[[bytes], Sequence[int]], ...]
    every_line: bool


def match_lines(machinery: Machinery, text: bytes) -> Matches:
    """The hits of a chunk, by a search in every line."""
    compiled = machinery.compiled
    hits: list[Row] = []
    add = hits.append
    lines = lines_of(text)
    start = 0
    if are_alike(lines):
        forms = list(map(form_of, lines))
        for line, form, found in zip(lines, forms, machinery.known_forms.find_in(lines, forms), strict=True):
            end = start + len(line)
            for index in found:
                add((compiled[index], text, start, end, line, form))
            start = end + 1
        return Matches(hits)
    for line, found in zip(lines, map(machinery.find_rules, lines), strict=True):
        end = start + len(line)
        if found:
            found.sort()
            form = form_of(line)
            for index in found:
                add((compiled[index], text, start, end, line, form))
        start = end + 1
    return Matches(hits)


def match_chunk(machinery: Machinery, text: bytes) -> Matches:
    """The hits of a chunk, by the cheapest way that is exact."""
    if len(text) < SMALL_CHUNK or machinery.every_line or any(gate(text) for gate in machinery.gates):
        return match_lines(machinery, text)
    find, probe = machinery.find_triggers, _probe(text)
    if _is_crowded(probe, find(probe)):
        return match_lines(machinery, text)
    return _match_around(machinery, text, find(text))


def _probe(text: bytes) -> bytes:
    """Whole lines from several places of the text, because hits may crowd in one part of it."""
    step = len(text) // _PROBES
    size = min(step, PROBE)
    pieces: list[bytes] = []
    end = 0
    for place in range(0, step * _PROBES, step):
        if place >= end:
            start = text.rfind(b"\n", 0, place) + 1
            end = text.find(b"\n", place + size) + 1 or len(text)
            pieces.append(text[start:end])
    return b"".join(pieces)


def _is_crowded(text: bytes, offsets: list[int]) -> bool:
    """Whether more than half of the lines hold a trigger: the scan then costs more than it saves."""
    with_trigger = 0
    end = -1
    for offset in offsets:
        if offset < end:
            continue
        with_trigger += 1
        end = text.find(b"\n", offset)
        if end < 0:
            break
    return with_trigger * 2 > text.count(b"\n")


def _match_around(machinery: Machinery, text: bytes, offsets: list[int]) -> Matches:
    """The hits in the lines of these sorted offsets."""
    compiled = machinery.compiled
    find, rfind = text.find, text.rfind
    spans: list[tuple[int, int]] = []
    size = len(text)
    end = -1
    for offset in offsets:
        if offset < end:
            continue
        start = rfind(b"\n", 0, offset) + 1
        end = find(b"\n", offset)
        if end < 0:
            end = size
        spans.append((start, end))
    lines = [text[start:end] for start, end in spans]
    forms = list(map(form_of, lines))
    in_each = machinery.known_forms.find_in(lines, forms)
    hits: list[Row] = []
    add = hits.append
    for (start, end), line, form, found in zip(spans, lines, forms, in_each, strict=True):
        for index in found:
            add((compiled[index], text, start, end, line, form))
    return Matches(hits)


def lines_of(text: bytes) -> list[bytes]:
    """The lines of a chunk without their line feeds; a line feed at the end does not begin another line."""
    lines = text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    return lines
