"""The closing lack: a program that never began to train says last what it lacks or does not take. Pure.

It prints that without a level, and leaves. Such words may stand anywhere in front of work that goes on. So
only the very last line counts, and only where no line tells of a step or of success.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.endings.cut_tracebacks import Numbered
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.log_levels import is_quiet

LACK = "the log ends before any step with what its program lacks or does not take"

_TO_DO = rb"(?:please|you (?:need|have) to|you must|must|run)"
_ABSENT = (
    rb"(?:(?:is |was |are |were )?not (?:be )?"
    rb"(?:found|available|set|defined|specified|given|provided|supported|implemented|installed|configured)"
    rb"|do(?:es)?(?: not|n't) exist|(?:is|are) (?:missing|undefined|empty|invalid))"
)
_THING = (
    rb"(?:gpus?|cuda|devices?|data\w*|samples?|images?|files?|examples?|records?|checkpoints?|models?|weights?"
    rb"|config\w*|inputs?|labels?|videos?|sequences?|graphs?|backends?|nodes?|hosts?|workers?|tokeni[sz]ers?)"
)
_NO_GOOD = (
    rb"(?:unknown|unsupported|invalid|wrong|bad|illegal|unrecogni[sz]ed|missing|not enough|too (?:many|few)"
    rb"|incorrect|insufficient|empty)"
)
_MUST = (
    rb"must (?:divide|have|match|equal|contain|exist"
    rb"|be (?:one of|an? |in |at |divisible|equal|the same|set\b))"
)
_LACKS = re.compile(
    rb"(?i)\A\W{0,8}(?:"
    rb"(?:.{3,120}[.!,;:] )?" + _TO_DO + rb" .{2,80}\b(?:first|before .{2,60})[.!]*\Z"
    rb"|(?:.{3,120}[.!,;:] )?please (?:provide|specify|set|give|pass|supply|download|prepare)\b.{2,120}\Z"
    rb"|.{2,120}\b" + _ABSENT + rb"(?:[ :,] ?(?:at |in |on |under |for )?\S{1,100})?[.!]*\Z"
    rb"|(?:no|0|zero) (?!more |new |other )(?:\S+ ){0,3}" + _THING + rb"(?: |\b).{0,80}"
    rb"\b(?:found|available|given|specified|provided|left|exists?|to (?:train|process|evaluate)(?: on)?)"
    rb"\b.{0,80}\Z"
    rb"|no such \w+.{0,80}\Z"
    rb"|(?:can ?not|can't|could ?n[o']t|unable to|failed to) \w+ .{2,120}\Z"
    rb"|" + _NO_GOOD + rb" (?:\w+ ?){1,4}(?:: ?.{1,80}|[.!]*|\S{1,40})\Z"
    rb"|(?:\w+ ){1,3}mismatch\b.{0,100}\Z"
    rb"|(?:\S+ ){1,6}(?:" + _MUST + rb".{0,100}|is too (?:old|new|small|large)[.!]*)\Z"
    rb"|.{3,120}\b(?:already )?exists?[.!,;]? .{0,20}(?:use --?\w|overwrite).{0,40}\Z"
    rb"|.{3,120}[,.;:!] ?(?:exiting|aborting|quitting|terminating)[.! ]*\Z"
    rb"|(?:error|oops|something went wrong)\W*\Z"
    rb")"
)
_GOES_ON = re.compile(
    rb"(?i)\b(?:skip\w*|ignor\w*|instead|default\w*|fall\w* ?back|warning|again|retry\w*|retri\w+|later|using"
    rb"|continu\w*|success\w*|done|finished|completed?|saved|from scratch|creating|download(?:ing|s))\b"
    rb"|[:?>=]\s*\Z"  # a question, or the first part of a line
    rb"|\A\s*(?:\xe2\x9a\xa0|\xe2\x84\xb9)"  # the signs of a warning and of information
)
_DONE = re.compile(rb"(?i)\b(?:done|finished|complete[ds]?|success\w*|saved|all good|passed)\b")
_NEAR = 6
"""Lines above in which a program may say that its work is done."""


def lack_at_end(lines: Numbered) -> int | None:
    """The number of the last line, if it tells of a lack; None otherwise. `lines`: the last ones of a log."""
    told = [(number, line) for number, line in lines if line.strip()]
    if not told:
        return None
    number, line = told[-1]
    words = line[front(line) :].rstrip()
    if _LACKS.match(words) is None or _GOES_ON.search(words) or is_quiet(line):
        return None
    return None if any(_DONE.search(above) for _, above in told[-1 - _NEAR : -1]) else number
