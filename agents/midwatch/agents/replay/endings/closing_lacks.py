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

_TO_DO = r"(?:please|you (?:need|have) to|you must|must|run)"
_ABSENT = (
    r"(?:(?:is |was |are |were )?not (?:be )?"
    r"(?:found|available|set|defined|specified|given|provided|supported|implemented|installed|configured"
    r"|writable|readable|logged in|authori[sz]ed)"
    r"|do(?:es)?(?: not|n't) (?:exist|match|fit)|(?:could|can) ?n[o']t be \w+"
    r"|(?:is|are) (?:missing|undefined|empty|invalid|required|negative|not divisible)"
    r"|differs?|exceeds?)"
)
_WHERE = (
    r"(?:[:,;.(!].{0,100}| (?:at|in|on|under|for|by|to|with|yet|here|any ?more|the|its|max\w*|\d)\b.{0,100})?"
)
_THING = (
    r"(?:gpus?|cuda|devices?|data\w*|samples?|images?|files?|examples?|records?|checkpoints?|models?|weights?"
    r"|config\w*|inputs?|labels?|videos?|sequences?|graphs?|backends?|nodes?|hosts?|workers?|tokeni[sz]ers?)"
)
_DATA = r"(?:data(?:set)?|samples?|images?|files?|examples?|records?|sequences?|graphs?|videos?|labels?)"
_NO_GOOD = (
    r"(?:unknown|unsupported|invalid|wrong|bad|illegal|unrecogni[sz]ed|missing|not enough|too (?:many|few)"
    r"|incorrect|insufficient|incompatible|empty|not authori[sz]ed)"
)
_MUST = (
    r"(?:must|should) (?:divide|have|match|equal|contain|exist"
    r"|be (?:one of|an? |in |at |divisible|equal|positive|the same|set\b))"
)
_ENGLISH = re.compile(
    r"(?i)\A\W{0,8}(?:"
    r"(?:.{3,120}[.!,;:] )?" + _TO_DO + r" .{2,80}\b(?:first|before .{2,60})[.!]*\Z"
    r"|(?:.{3,120}[.!,;:] )?please (?:provide|specify|set|give|pass|supply|download|prepare|use|run|install"
    r"|log ?in)\b.{2,120}\Z"
    r"|you need to install .{2,80}\Z|install .{2,60} (?:first|to use .{2,60})\Z"
    r"|.{2,120}(?<![:=] )(?<!  )\b" + _ABSENT + _WHERE + r"[.!]*\Z"
    r"|(?:no|0|zero|(?:loaded|found|read) 0) (?!more |new |other )(?:\S+ ){0,3}" + _THING + r"(?: |\b).{0,80}"
    r"\b(?:found|available|given|specified|provided|left|exists?|to (?:train|process|evaluate)(?: on)?"
    r"|in \S+)\b.{0,80}\Z"
    r"|(?:loaded|found|read) 0 " + _THING + r"\b.{0,80}\Z"
    r"|(?:(?:total|number of|num|found|loaded)[ _](?:\w+[ _]){0,2}" + _DATA + r"|len\(\w+\)"
    r"|" + _DATA + r" (?:length|size|count)) ?[:=] ?0\Z|.{0,40}" + _DATA + r" (?:is|are) (?:0|zero)[.!]*\Z"
    r"|.{0,80}\bonly \d+ .{0,60}\b(?:available|visible|found|given)\b.{0,60}\Z"
    r"|(?:no such|no module named|requires|this \w+ requires) \S+.{0,80}\Z"
    r"|(?:can ?not|can't|could ?n[o']t|unable to|failed to) \w+ .{2,120}\Z"
    r"|" + _NO_GOOD + r" \w+(?: \w+){0,5} ?(?:: ?.{1,80}|[.!]*|\S{1,40})\Z"
    r"|(?:\S+ ){1,4}(?:check failed\b.{0,60}|mismatch\b.{0,100}|insufficient\b.{0,60}|missing"
    r"|too (?:low|small|large))\Z"
    r"|(?:\S+ ){1,8}(?:" + _MUST + r".{0,100}|is too (?:old|new|low|small|large)[.!]*)\Z"
    r"|.{3,120}\b(?:already )?exists?[.!,;]? .{0,20}(?:use --?\w|overwrite).{0,40}\Z"
    r"|.{0,60}\banother (?:run|instance|process|job) is .{0,40}\Z"
    r"|.{3,120}[,.;:!] ?(?:exiting|aborting|quitting|terminating)[.! ]*\Z"
    r"|(?:unauthori[sz]ed|(?:login|authentication) required|gated repo\b.{0,80}"
    r"|(?:rate limit|quota) (?:reached|exceeded|exhausted|hit))[.! ]*\Z"
    r"|(?:error|oops|something went wrong)[.! ]*\Z"
    r")"
)
_OTHERS = re.compile(
    "(?i)\\A.{0,120}(?:"
    # Chinese and Japanese
    "\u627e\u4e0d\u5230|\u4e0d\u5b58\u5728|\u672a\u627e\u5230|\u8bf7\u5148|\u7f3a\u5c11"
    "|\u898b\u3064\u304b\u308a\u307e\u305b\u3093|\u5b58\u5728\u3057\u307e\u305b\u3093"
    # Korean and Russian
    "|\ucc3e\uc744 \uc218 \uc5c6|\uc874\uc7ac\ud558\uc9c0 \uc54a"
    "|\u043d\u0435 \u043d\u0430\u0439\u0434\u0435\u043d"
    # French, German, Spanish, Portuguese, Italian and Turkish
    "|introuvable|n'existe pas|veuillez d'abord|nicht gefunden|existiert nicht|bitte zuerst"
    "|no se encontr[\u00f3o]|no encontrad[oa]|no existe|n\u00e3o encontrad[oa]|n\u00e3o existe"
    "|non trovat[oa]|non esiste|bulunamad\u0131|mevcut de\u011fil)"
)
_AWAY = re.compile(r"(?i)\bnot responding\b|\A\W{0,8}no response from\b|\bunreachable\b")
_GOES_ON = re.compile(
    r"(?i)\b(?:skip\w*|ignor\w*|instead|default\w*|fall\w* ?back|warning|again|retry\w*|retri\w+"
    r"|(?<!or )later|using|continu\w*|success\w*|done|finished|completed?|saved|from scratch|creating"
    r"|but(?! only| got)|download(?:ing|s)|disabl\w*|will (?:not )?be|only used"
    r"|wisely|kmsro"  # Paddle's advice on OMP_NUM_THREADS, and Mesa's note on a driver that it does not need
    r"|no (?:\w+ )?(?:errors?|issues?|problems?|duplicates?|conflicts?))\b"
    r"|\b(?:corrupt\w*|broken|duplicate\w*|removed|failed)(?: \w+){1,3} ?[:=]"
    r"|: ?[\d.]+ ?%?\Z(?<!: 0)(?<!:0)"  # a measure; a bare 0 may count what is lacking
    r"|\b(?:missing|bad|invalid|wrong|empty|unreadable|unmatched|skipped)(?: \w+){1,3} ?[:=] ?0\Z"
    r"|(?:\w ?[:=] ?[^\s,:=]+, \w[\w ]{0,30}){2} ?[:=] ?\S"  # three values
    r"|[:?>={]\s*\Z"  # a question, or the first part of a line
    r"|\A\W*(?:if|note|hint|tip|raise|assert|print|return|def|elif|else|for|while|import|from)\b"
    "|\\A\\s*[\u26a0\u2139]"  # the signs of a warning and of information
)
"""The program goes on, counts or measures, asks, advises, or shows its own code."""
_DONE = re.compile(rb"(?i)\b(?:done|finished|complete[ds]?|success\w*|saved|all good|passed)\b")
_NEAR = 6
"""Lines above in which a program may say that its work is done."""
_LONGEST = 240  # characters


def lack_at_end(lines: Numbered) -> tuple[int, str] | None:
    """The number of the last line and its error type, if it tells of a lack; None otherwise.

    `lines`: the last ones of a log.
    """
    told = [(number, line) for number, line in lines if line.strip()]
    if not told:
        return None
    number, line = told[-1]
    words = line[front(line) :].decode("utf-8", "replace").rstrip()
    if len(words) > _LONGEST or not any(each.search(words) for each in (_ENGLISH, _OTHERS, _AWAY)):
        return None
    if _GOES_ON.search(words) or is_quiet(line):
        return None
    if any(_DONE.search(above) for _, above in told[-1 - _NEAR : -1]):
        return None
    return number, "communication" if _AWAY.search(words) else "config"
