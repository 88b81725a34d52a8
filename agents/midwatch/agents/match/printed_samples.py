"""Printed samples: prompts and completions that a training prints to show how its model does. Pure.

A model that writes programs quotes tracebacks and errors, and so do its prompts. None is of the run.

- verl prints `[prompt]`, `[response]`, `[ground_truth]` and `[score]`, one below the other, once it has the
  score. Nothing else of the same process stands between them.
- TRL prints a table of prompts and completions, in a panel.

A sample whose first or last line is not in the chunk is not known. So a failure that ends one counts.
"""

from __future__ import annotations

import re

from midwatch.agents.match.lines_above import lines_above

_LONGEST = 64 * 1024  # bytes of a sample that are searched
_SPEAKER = re.compile(rb"(?:\([^()\n]{0,80}pid=\d[^()\n]{0,80}\) )?")
_BEGINS, _ENDS = b"[prompt]", b"[score]"
_PARTS = (_BEGINS, b"[response]", b"[ground_truth]")
_CELLS = re.compile(rb"[^\n\xe2]{0,240}\xe2\x94\x82 \xe2\x94\x82 [^\n]*\xe2\x94\x82 *(?:\n|\Z)")
_EDGE, _SIDE = b"\xe2\x94\x83", b"\xe2\x94\x82"  # of the header's cells, and of the others


class Samples:
    """The samples of one chunk's text. Most texts hold none, and a storm of failures asks often.

    So a chunk is searched as a whole once a second failure asks. For one failure the lines above it do.
    """

    def __init__(self, text: bytes) -> None:
        self.text = text
        self._asked = False
        self._prompts: bool | None = None

    def hold(self, start: int, end: int) -> bool:
        """Whether the line that spans `start` to `end` is part of a printed sample."""
        if self._asked and self._prompts is None:
            self._prompts = _BEGINS in self.text and _ENDS in self.text
        self._asked = True
        prompts = self._prompts is not False and _is_of_verl(self.text, start, end)
        return prompts or _is_of_a_table(self.text, start)


def _is_of_verl(text: bytes, start: int, end: int) -> bool:
    if text.rfind(_BEGINS, max(start - _LONGEST, 0), end) < 0:
        return False
    found = _SPEAKER.match(text, start)
    speaker = found[0] if found else b""
    score = text.find(b"\n" + speaker + _ENDS, start, end + _LONGEST)
    again = text.find(b"\n" + speaker + _BEGINS, start, end + _LONGEST)
    if score < 0 or 0 <= again < score:
        return False
    if text.startswith(_PARTS, start + len(speaker)):
        return True
    for _, words in lines_above(text, start, speaker):
        if words.startswith(_ENDS):
            return False
        if words.startswith(_PARTS):
            return True
    return False


def _is_of_a_table(text: bytes, start: int) -> bool:
    if not _CELLS.match(text, start):
        return False
    header = text.rfind(_EDGE, max(start - _LONGEST, 0), start)
    if header < 0:
        return False
    begin, stop = text.rfind(b"\n", 0, header) + 1, text.find(b"\n", header)
    titles = text[begin:stop].lower()
    rows = text[stop + 1 : start].splitlines()
    return b"prompt" in titles and b"completion" in titles and all(_SIDE in row for row in rows)
