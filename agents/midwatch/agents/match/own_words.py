"""What a line says of itself, apart from the traceback around it. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from midwatch.agents.match.copied_lines import are_copied
from midwatch.agents.match.hedges import only_mentions
from midwatch.rules.matching.hits import CompiledRule, Match
from midwatch.streams.lines.forms import LONGEST_FORM, form_of
from midwatch.streams.lines.launcher_prefix import logged
from midwatch.streams.lines.log_levels import is_echo, is_quiet, stands_aside

_LONGEST = 64  # lines of a list


class OwnWords(NamedTuple):
    """Why a line reports no failure by its own words, for a rule that was found in it; "" where it may.

    `quiet`: its writer calls it no failure. `aside`: it repeats a line, or only mentions what is looked for.
    """

    quiet: str
    aside: str


def own_words(hit: Match) -> OwnWords:
    """What the line of a hit says of itself. A storm repeats few forms, so they are remembered by rule.

    torch lists what a checkpoint lacks in lines that begin with a tab. Who wrote them the first line tells.
    """
    if hit.compiled.digits_are_alike and hit.end - hit.start <= LONGEST_FORM:
        words = _own_words(hit.compiled, hit.form)
    else:
        words = _own_words.__wrapped__(hit.compiled, hit.line)
    if words.quiet == "quiet":
        head = logged(hit.line)
        if head and are_copied(hit.chunk):
            words = _own_words.__wrapped__(hit.compiled, hit.line[head:])
    of_a_list = not words.quiet and hit.chunk.startswith(b"\t", hit.start)
    return words._replace(quiet="quiet") if of_a_list and is_quiet(_above_the_list(hit)) else words


def _above_the_list(hit: Match) -> bytes:
    """The nearest line above that does not begin with a tab; empty where none is near."""
    text, at = hit.chunk, hit.start
    for _ in range(_LONGEST):
        begin = text.rfind(b"\n", 0, max(at - 1, 0)) + 1
        if at == 0 or not text.startswith(b"\t", begin):
            return text[begin : max(at - 1, 0)]
        at = begin
    return b""


@lru_cache(maxsize=2048)
def _own_words(compiled: CompiledRule, line: bytes) -> OwnWords:
    hit = Match(compiled, line, 0, len(line), line, form_of(line))
    quiet = ("beside" if stands_aside(line) else "quiet") if is_quiet(line) else ""
    return OwnWords(quiet, "repeated" if is_echo(line) else "mentioned" if only_mentions(hit) else "")
