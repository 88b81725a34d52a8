"""Terminal escapes, and what is left of them where a browser, a collector or a pager spelled them out. Pure.

Text that was copied from a web page has often lost the escape byte: `[36m(Worker pid=7)[0m`. Collectors write
`#033[36m`, pagers `^[[36m`, and a decoder that fails U+FFFD in its place. A page also makes no-break spaces
of blanks, by which rules would find nothing.
"""

from __future__ import annotations

import re

from ahocorasick_rs import BytesAhoCorasick

RESETS = (b"[0m", b"[39m", b"[22m")
"""How a colour or bold print ends. Without one of them a line holds no spelled colours."""

NO_BREAK = "\u00a0".encode()
"""A blank of a web page."""

_any_literal = BytesAhoCorasick([NO_BREAK, *RESETS]).find_matches_as_indexes
"""One search for all of them takes less time than one for each, in a long text a fifth."""

# Every escape byte goes, with its sequence if there is one. So no rest can form a new sequence.
_ESCAPE = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]"  # CSI: colours, cursor
    rb"|[\]PX^_][^\x07\x1b\r\n]*(?:\x07|\x1b\\)"  # OSC, DCS and other strings: titles, links
    rb"|[ -/]*[0-~])?"  # two-character sequences
)
_SPELLED = re.compile(
    rb"(?:\xef\xbf\xbd|\xe2\x90\x9b|\xe2\x86\x90|#033|\^\[|\\(?:x1[bB]|u001[bB]|033|e))?"
    rb"\[(?:\d{1,3}(?:;\d{1,3}){0,6})?m"
)


def has_escapes(text: bytes) -> bool:
    """Whether `without_escapes` may change a line of the text."""
    return b"\x1b" in text or bool(_any_literal(text))


def without_escapes(text: bytes) -> bytes:
    """The text without escapes, its no-break spaces as blanks. Where a colour ends the spelled ones go, too.

    A second time changes nothing: a line in which the rest would spell a colour again keeps them all.
    """
    if b"\x1b" in text:
        text = _ESCAPE.sub(b"", text)
    text = text.replace(NO_BREAK, b" ")
    return b"\n".join(map(_without_spelled, text.split(b"\n"))) if _spells(text) else text


def _spells(text: bytes) -> bool:
    return any(reset in text for reset in RESETS)


def _without_spelled(line: bytes) -> bytes:
    if not _spells(line):
        return line
    plain = _SPELLED.sub(b"", line)
    return line if _spells(plain) else plain
