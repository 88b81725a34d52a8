"""What a line says of itself, apart from the traceback around it. Pure."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from midwatch.agents.match.hedges import only_mentions
from midwatch.rules.matching.hits import CompiledRule, Match
from midwatch.streams.lines.forms import LONGEST_FORM, form_of
from midwatch.streams.lines.log_levels import is_echo, is_quiet, stands_aside


class OwnWords(NamedTuple):
    """Why a line reports no failure by its own words, for a rule that was found in it; "" where it may.

    `quiet`: its writer calls it no failure. `aside`: it repeats a line, or only mentions what is looked for.
    """

    quiet: str
    aside: str


def own_words(hit: Match) -> OwnWords:
    """What the line of a hit says of itself. A storm repeats few forms, so they are remembered by rule."""
    if hit.compiled.digits_are_alike and hit.end - hit.start <= LONGEST_FORM:
        return _own_words(hit.compiled, hit.form)
    return _own_words.__wrapped__(hit.compiled, hit.line)


@lru_cache(maxsize=2048)
def _own_words(compiled: CompiledRule, line: bytes) -> OwnWords:
    hit = Match(compiled, line, 0, len(line), line, form_of(line))
    quiet = ("beside" if stands_aside(line) else "quiet") if is_quiet(line) else ""
    return OwnWords(quiet, "repeated" if is_echo(line) else "mentioned" if only_mentions(hit) else "")
