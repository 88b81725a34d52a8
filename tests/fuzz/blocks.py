"""Rules over tracebacks as a worker asks them, against RE2's public search in blocks found plainly."""

from __future__ import annotations

import random
import re
from collections import Counter
from dataclasses import dataclass, field

import re2

from fuzz.differential import Reference
from fuzz.patterns import Piece, line, rule_pattern
from midwatch.rules.matching.compiler import RuleSet, compile_rules
from midwatch.rules.model import BlockKind, Rule
from midwatch.shippers.files.tail import FilePosition
from midwatch.shippers.files.tail import ReadBlock as Read
from midwatch.shippers.sending.chunker import Chunker
from midwatch.streams.lines.blocks import LARGEST_CONTEXT
from midwatch.streams.lines.normalise import normalise, places
from midwatch.streams.records import Generation, Origin

Hit = tuple[int, str, tuple[tuple[str, str], ...]]
"""Offset of the block's last line, rule, captures."""

_RULES = 6
_TEXTS = 60
_ORIGIN = Origin("local:ada/llm", "n0", 1, "local:1:1", "boot", "s")
_FILE = Generation(1, 1, "f")
_WHO = (
    b"",
    b"[rank1]: ",
    b"[rank22]: ",
    b"3: ",
    b"(Trainer pid=7) ",
    b"[1,5]<stderr>:",
    b"n0.toys.edu: ",
    b"toy/0 ",
)
_HEADER = b"Traceback (most recent call last):"
_SPEAKER = re.compile(rb"\[(?:rank|default)\d+\]:? ?|\[\d+,\d+\]<std(?:out|err)>:|\d{1,6}: ")
_HOST = re.compile(rb"[A-Za-z][\w.-]{0,61}\d: ")  # what pdsh prints; an exception of such a name reads alike
_NAMED = re.compile(rb"[a-z]+\d[\w.-]*\.edu: |[A-Za-z][\w.-]{0,62}/\d{1,6} ")  # a host's full name; TorchX
_PADDED = re.compile(rb" {1,5}(?=\d{1,6}: )")  # srun --label writes the labels of all tasks in one width
_ACTOR = re.compile(rb"\([^()]{0,80}pid=\d+[^()]{0,80}\) ")


@dataclass(slots=True)
class Tally:
    """What was tried, and the first differences found."""

    cases: int = 0
    hits: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    differences: list[str] = field(default_factory=list)


def plain_blocks(text: bytes) -> list[tuple[int, bytes]]:
    """Offset of the last line, and the text, of every block: see `docs/design.md`, Blocks of lines."""
    talking: dict[bytes, tuple[list[tuple[bytes, int]], int]] = {}
    found: list[tuple[int, bytes]] = []
    offset = 0
    for whole in text.split(b"\n")[: text.count(b"\n")]:
        who, said = _parted(whole)
        lines, others = talking.get(who, ([], 0))
        if said.startswith((_HEADER, b"Original " + _HEADER)):
            talking[who] = ([(said, len(whole))], 0)
        elif lines and said[:1] in (b" ", b"\t", b"\r", b"\x0b", b"\x0c"):
            talking[who] = ([*lines, (said, len(whole))], 0)
        elif lines and re.fullmatch(rb"[A-Za-z_][A-Za-z0-9_.]*(?:: .*|:|)", said, re.DOTALL):
            del talking[who]
            found.append((offset, b"\n".join([*_shortened(lines), said])))
        elif lines and others == 16:
            del talking[who]
        elif lines:
            talking[who] = ([*lines, (said, len(whole))], others + 1)
        offset += len(whole) + 1
    return found


def _parted(whole: bytes) -> tuple[bytes, bytes]:
    first = _HOST.match(whole) or _PADDED.match(whole) or _NAMED.match(whole)
    at = first.end() if first else 0
    while found := _SPEAKER.match(whole, at) or _ACTOR.match(whole, at):
        at = found.end()
    return whole[:at], whole[at:]


def _shortened(lines: list[tuple[bytes, int]]) -> list[bytes]:
    """The first and the latest 63, no more than 64 KiB with their line feeds; then without others' words."""
    first, rest = lines[0], lines[1:]
    while len(rest) > 63 or sum(size + 1 for _, size in (first, *rest)) > 65536:
        rest = rest[1:]
    return [first[0], *(said for said, _ in rest if said[:1].isspace())]


def try_blocks(cases: int, seed: int, stop_at_first: bool = False) -> Tally:
    """Try at least `cases` pairs of a rule and a text, whole and in chunks.

    A larger text stays whole: one chunk repeats no more than its youngest blocks.
    """
    rng = random.Random(seed)
    tally = Tally()
    while tally.cases < cases and not (stop_at_first and tally.differences):
        pieces = _rules(rng)
        rules = [Rule(name=f"r{i}", pattern=p.text, block=BlockKind.TRACEBACK) for i, p in enumerate(pieces)]
        rule_set = compile_rules(rules)
        reference = Reference([piece.text for piece in pieces])
        for _ in range(_TEXTS):
            text = normalise(_text(rng, pieces)).text
            wanted = _wanted(reference, text)
            tally.cases += len(rules)
            tally.hits += len(wanted)
            for kind in ("whole", "cut", "cut into sections") if len(text) <= LARGEST_CONTEXT else ("whole",):
                tally.kinds[kind] += 1
                found = _found(rule_set, text, kind, rng)
                if found != wanted:
                    odd = sorted(set(found) ^ set(wanted))[:2]
                    tally.differences.append(f"{kind}: {[p.text for p in pieces]} on {text!r}: {odd}")
    return tally


def _wanted(reference: Reference, text: bytes) -> list[Hit]:
    found: list[Hit] = []
    for offset, block in plain_blocks(text):
        for index, expression in enumerate(reference.compiled):
            match = expression.search(block)
            if match is not None:
                captured = {
                    name.decode(): value.decode("utf-8", "replace")
                    for name, value in match.groupdict().items()
                    if value is not None
                }
                found.append((offset, f"r{index}", tuple(sorted(captured.items()))))
    return sorted(found)


def _found(rule_set: RuleSet, text: bytes, kind: str, rng: random.Random) -> list[Hit]:
    lines = [each + b"\n" for each in text.split(b"\n")[:-1]]
    reads: list[Read] = []
    at = FilePosition()
    while lines:
        count = len(lines) if kind == "whole" else rng.choice((1, 2, 5, 40))
        raw, lines = b"".join(lines[:count]), lines[count:]
        end = FilePosition(at.offset + len(raw), at.number + raw.count(b"\n"))
        reads.append(Read("a.log", _FILE, at, end, raw, 0.0, 1.0))
        at = end
    cutter = Chunker(_ORIGIN, 1 << 18)
    polls = [reads] if kind == "cut into sections" else [[read] for read in reads]
    hits: list[Hit] = []
    for chunk in (parcel.chunk for poll in polls for parcel in cutter.parcels(poll)):
        start = 0
        for section in chunk.sections:
            part = chunk.text[start : start + section.size]
            start += section.size
            found = rule_set.match_blocks(part)
            for hit, place in zip(found, places(section, part, (h.start for h in found)), strict=True):
                if hit.line_number >= section.context:
                    hits.append((place.offset, hit.rule.name, tuple(sorted(hit.captures().items()))))
    return sorted(hits)


def _rules(rng: random.Random) -> list[Piece]:
    pieces: list[Piece] = []
    while len(pieces) < _RULES:
        one, other = rule_pattern(rng), rule_pattern(rng)
        form = rng.choice(("{0}", "(?s){0}.*{1}", "(?s){0}.*\\n(?:{1})", "(?m)^ *{0}$", r"\A.*\n(?s:.*){0}"))
        text = form.format(one.text, other.text)
        try:
            Reference([text])
        except re2.error:
            continue
        pieces.append(Piece(text, rng.choice((one, other)).sample))
    return pieces


def _text(rng: random.Random, pieces: list[Piece]) -> bytes:
    """Tracebacks of several speakers, line by line in any order, with lines of no traceback in between."""
    speakers = rng.sample(_WHO, rng.choice((1, 2, 3)))
    left = [
        [who + said for said in _said(rng, pieces)] for who in speakers for _ in range(rng.choice((1, 1, 2)))
    ]
    lines: list[bytes] = []
    while any(left):
        talking = rng.choice([each for each in left if each])
        lines += talking[: (run := rng.choice((1, 1, 3, 30)))]
        del talking[:run]
        lines += [rng.choice(speakers) + line(rng, pieces) for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    return b"\n".join(lines) + b"\n"


def _said(rng: random.Random, pieces: list[Piece]) -> list[bytes]:
    header = rng.choice((_HEADER, _HEADER, _HEADER, b"Original " + _HEADER, b"x " + _HEADER))
    frames = [b"  " + line(rng, pieces) for _ in range(rng.choice((0, 1, 3, 8, 70)))]
    others = [line(rng, pieces) for _ in range(rng.choice((0, 0, 2, 15, 16, 17)))]
    end = rng.choice((b"", b"Some.Error: ", b"KeyError: ", b"Error:")) + line(rng, pieces)
    return [header, *frames, *others, end]
