"""Random rules in RE2's syntax, each with a way to make text that it likely matches."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from dataclasses import dataclass

Sample = Callable[[random.Random], bytes]


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a pattern, and text for it."""

    text: str
    sample: Sample


WORDS = (
    "err",
    "OOM",
    "aab",
    "abab",
    "rank ",
    "loss",
    "timed out",
    "NCCL WARN",
    "kKs",
    "Watchdog",
    ": ",
    "Exit",
    "code 137",
)
_OTHER = ("é", "ß", "日本", "\u212a", "\u017f", "µ")
_CLASSES = (
    (r"\d", b"0123456789"),
    (r"\w", b"abZ_09"),
    (r"\s", b" \t\r"),
    (r"\S", b"x.-"),
    (r"\W", b" .:"),
    (r"\D", b"ab "),
    (".", b"aZ0 -"),
    ("[^x]", b"abk"),
    ("[^a-z]", b"A0 "),
    ("[ab]", b"ab"),
    ("[Kk]", b"Kk"),
    ("[0-3]", b"0123"),
    (r"[^\d]", b"ab "),
    (r"[^\S]", b" \t"),
    (r"[a\n]", b"a"),
    (r"[]a]", b"]a"),
    (r"[a\]-]", b"a]-"),
    (r"[\x00-\x1f]", b"\x00\x07\r"),
    (r"[[:alpha:]]", b"abZ"),
    (r"[[:^alpha:]_]", b"0 _"),
    (r"\pL", b"abZ"),
    (r"\PL", b"0 -"),
    (r"\C", b"a\x00\xff"),
)
_EMPTY = ("^", "$", r"\b", r"\B", r"\A", r"\z", "(?:)", "", "(?m:^)", "(?m:$)", "(?-m:^)", "(?-m:$)")
_MAY_BE_EMPTY = (
    (r"\s*", (b"", b" ", b"\t ", b"\r", b"\x0c")),
    (r"\s?", (b"", b" ", b"\t")),
    ("[qzK]*", (b"", b"q", b"z", b"Kq")),
    ("(?i:k)?", (b"", b"k", b"K")),
    (r"[\n;]*", (b"", b";")),
    ("(?:ab|cd)*", (b"", b"ab", b"cdab")),
    ("é*", (b"", "é".encode())),
    ("(?:x|yy)?", (b"", b"x", b"yy")),
)
_SELDOM = (
    ("[:=]", (b":", b"=")),
    ("(?:died|q)", (b"died", b"q")),
    ("(?:y|)z", (b"yz", b"z")),
    (r"[78]", (b"7", b"8")),
    ("µ", ("µ".encode(),)),
    ("(?:Kill(?P<how>ed)?)", (b"Kill", b"Killed")),
)
_ESCAPES = (
    (r"\.", b"."),
    (r"\x41", b"A"),
    (r"\x{42}", b"B"),
    (r"\101", b"A"),
    (r"\t", b"\t"),
    (r"\n", b"\n"),
)


def rule_pattern(rng: random.Random) -> Piece:
    """A pattern that RE2 may yet refuse."""
    piece = _series(rng, 0)
    flags = rng.random()
    if flags < 0.12:
        return Piece(f"(?i){piece.text}", lambda r: _recased(piece.sample(r), r))
    if flags < 0.2:
        return Piece(rng.choice(("(?s)", "(?m)", "(?-m)", "(?U)", "(?sU)")) + piece.text, piece.sample)
    return piece


def in_any_case(piece: Piece) -> Piece:
    """The same pattern under `(?i)`."""
    return Piece(f"(?i:{piece.text})", lambda r: _recased(piece.sample(r), r))


def either(one: Piece, other: Piece) -> Piece:
    """One pattern or the other, not in a group."""
    return Piece(f"{one.text}|{other.text}", lambda r: r.choice((one, other)).sample(r))


def without_literals(rng: random.Random, ends: tuple[str, str]) -> Piece:
    """A pattern of classes only, between two anchors: nothing to scan for, and few lines match it."""
    chosen = [rng.choice(_CLASSES) for _ in range(rng.choice((2, 3)))]
    text = "".join(text for text, _ in chosen)
    return Piece(
        f"{ends[0]}{text}{ends[1]}", lambda r: b"".join(bytes([r.choice(letters)]) for _, letters in chosen)
    )


def loosely_joined(rng: random.Random, common: str) -> Piece:
    """A common word and what is seldom, with parts between them that may be empty."""
    between = rng.sample(_MAY_BE_EMPTY, rng.choice((1, 1, 2)))
    if rng.random() < 0.02:
        between.append(rng.choice(((r"(?:a?\d)*", (b"", b"7", b"a7")), (r"\d*?", (b"", b"3")))))
    end, ends = rng.choice(_SELDOM)
    if rng.random() < 0.02:
        end, ends = f"(?:{end}|)", (*ends, b"")
    text = common + "".join(part for part, _ in between) + end
    return Piece(
        text, lambda r: b"".join((common.encode(), *(r.choice(said) for _, said in between), r.choice(ends)))
    )


def line(rng: random.Random, pieces: list[Piece]) -> bytes:
    """A line: made for one of the patterns, damaged or not, or of anything at all."""
    kind = rng.random()
    if kind < 0.1:
        return b""
    if kind < 0.3:
        return b"".join(rng.choice(_SCRAPS) for _ in range(rng.choice((1, 2, 4, 9))))
    text = rng.choice(pieces).sample(rng)
    damage = rng.random()
    if text and damage < 0.15:
        place = rng.randrange(len(text))
        text = text[:place] + text[place + 1 :]
    elif damage < 0.25:
        place = rng.randrange(len(text) + 1)
        text = text[:place] + bytes([rng.randrange(256)]) + text[place:]
    elif damage < 0.35:
        text = text.swapcase()
    elif damage < 0.45:
        text = rng.choice(_SCRAPS) + text + rng.choice(_SCRAPS)
    elif damage < 0.5:
        text = text + text
    return text.replace(b"\n", rng.choice((b"", b" ")))


def other_digits(rng: random.Random, text: bytes) -> bytes:
    """The line with some of its digits replaced by others."""
    return bytes(
        rng.choice(b"0123456789") if 48 <= each <= 57 and rng.random() < 0.4 else each for each in text
    )


_SCRAPS = (
    *(word.encode() for word in (*WORDS, *_OTHER)),
    *(
        b"a",
        b"b",
        b"x",
        b"ERR",
        b"Err",
        b"12",
        b"\r",
        b"\t",
        b"\x00",
        b"\xff",
        b"\xc3",
        b"\xe9",
        b"\x1b[31m",
        b"_",
    ),
)


def _series(rng: random.Random, depth: int) -> Piece:
    parts = [_part(rng, depth) for _ in range(rng.choice((1, 1, 2, 2, 3)))]
    return Piece("".join(part.text for part in parts), lambda r: b"".join(part.sample(r) for part in parts))


def _part(rng: random.Random, depth: int) -> Piece:
    kind = rng.random()
    if depth > 3 or kind < 0.5:
        return _atom(rng)
    if kind < 0.62:
        return _choice(rng, depth)
    if kind < 0.72:
        return _group(rng, depth)
    return _repeat(rng, depth)


def _atom(rng: random.Random) -> Piece:
    kind = rng.random()
    if kind < 0.45:
        return _literal(rng, rng.choice(WORDS))
    if kind < 0.5:
        return _literal(rng, rng.choice(_OTHER))
    if kind < 0.55:
        text, sample = rng.choice(_ESCAPES)
        return Piece(text, lambda _: sample)
    if kind < 0.65:
        text = rng.choice(_EMPTY)
        return Piece(text, lambda _: b"")
    text, letters = rng.choice(_CLASSES)
    return Piece(text, lambda r: bytes([r.choice(letters)]))


def _literal(rng: random.Random, word: str) -> Piece:
    text = f"\\Q{word}\\E" if rng.random() < 0.06 else re.sub(r"([.+*?(){}|\[\]\\^$])", r"\\\1", word)
    return Piece(text, lambda _: word.encode())


def _choice(rng: random.Random, depth: int) -> Piece:
    parts = [_series(rng, depth + 1) for _ in range(rng.choice((2, 2, 3)))]
    if rng.random() < 0.1:
        parts.append(Piece("", lambda _: b""))
    text = "|".join(part.text for part in parts)
    return Piece(f"(?:{text})", lambda r: r.choice(parts).sample(r))


def _group(rng: random.Random, depth: int) -> Piece:
    inner = _series(rng, depth + 1)
    kind = rng.random()
    if kind < 0.2:
        return in_any_case(inner)
    if kind < 0.27:
        return Piece(f"(?{rng.choice(('s', '-i', 'U', 'm-s', '-s'))}:{inner.text})", inner.sample)
    if kind < 0.33:
        return Piece(f"((?i){inner.text}|x)", lambda r: _recased(inner.sample(r), r))
    if kind < 0.6:
        return Piece(f"(?P<g{rng.randrange(10**9)}>{inner.text})", inner.sample)
    return Piece(f"({inner.text})", inner.sample)


_QUANTIFIERS = (
    *(("*", 0, 3), ("+", 1, 3), ("?", 0, 1), ("*?", 0, 3), ("+?", 1, 3), ("??", 0, 1)),
    *(("{2}", 2, 2), ("{1,3}", 1, 3), ("{0,2}", 0, 2), ("{2,}", 2, 4), ("{0}", 0, 0), ("{10}", 10, 10)),
)


def _repeat(rng: random.Random, depth: int) -> Piece:
    inner = _series(rng, depth + 1)
    if rng.random() < 0.04:
        return Piece(f"{inner.text}{{,3}}", lambda r: inner.sample(r) + b"{,3}")
    sign, low, high = rng.choice(_QUANTIFIERS)
    return Piece(
        f"(?:{inner.text}){sign}", lambda r: b"".join(inner.sample(r) for _ in range(r.randint(low, high)))
    )


def _recased(text: bytes, rng: random.Random) -> bytes:
    """The text in any case; now and then with the two letters beyond ASCII that fold to k and s."""
    recased = bytes(rng.choice((byte, ord(chr(byte).swapcase()))) if byte < 128 else byte for byte in text)
    if rng.random() < 0.25:
        recased = recased.replace(b"K", "\u212a".encode()).replace(b"s", "\u017f".encode())
    return recased
