"""Good ends: where the last lines of a saved log tell of work that is done, in a program's own words. Pure.

A script prints such words behind a program that failed, too. So they prove nothing by themselves: the program
that got over its failure must have printed them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from midwatch.agents.match.empty_success import is_empty_success
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from midwatch.streams.lines.launcher_prefix import front

_LAST = 6
"""Lines from the end that may tell of it, blank ones not counted."""
_LAST_ABOVE = 16
"""The same of lines above a failure, whose traceback counts."""
_NEAR = 40
_OFTEN = 3
_LONGEST = 400
_DIGITS = re.compile(rb"\d+")
_IGNORED = re.compile(rb"Exception ignored (?:in|while|on)\b")
_NOISE = re.compile(rb"\[[IW]\d{3,4} [^\]]*\] \[c10d")
_EXIT = re.compile(r"(?i)\b(?:rc|exit[_ ]?(?:code|status)|ended with|returned|with code)\W{0,3}(-?\d+)\b")
_EXIT_ZERO = re.compile(rb"(?i)\W*(?:\w+ )?exit(?:ed)?(?: with)?[ _-]?(?:code|status)?[ :=]*0\W*")
_LOGGED = re.compile(
    r"\[?\d{2,4}[-/]\d\d[-/]\d{2,4}[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?\]?(?P<before>[\w .:|\[\]()-]{0,40}?)"
    r"\b(?:INFO|WARNING|ERROR)\b(?P<after>[ :|\]-]*(?:[\w.]+ ?[:|\]-])?)"
)
FILE = (
    r"[\w./~{}=-]*[\w}](?:\.(?:pt|pth|npz|npy|jsonl?|csv|tsv|bin|safetensors|h5|ckpt|pkl|onnx|gz|parquet|txt|html?"
    r"|tar|md|model|msgpack|ya?ml)\b|/)"
)
_OF_THE_WHOLE = (
    r"(?:(?:the|all|whole|everything|training(?: of)?|fine-?tuning|pre-?training|job|run|fit|fitting|search"
    r"|sweep|notebook|server|trainer|coordinator|learner"
    r"|pipeline|evaluation|solver|bundle|script|experiment|optimi[sz]ation|inference|export|conversion|indexing"
    r"|simulation|benchmark|study|tasks?|epochs?|steps|targets|rounds|folds|stages|generations|\d+)[ :]+)"
)
_DONE = re.compile(
    r"(?i)(?:\A|[\]:|>] |- |\b(?:info|notice)\b\W{1,4})\W*"
    + _OF_THE_WHOLE
    + r"{0,4}(?:is |are |was )?(?:successfully )?"
    r"(?:done|finished|completed?|ended|over|evaluated|processed|up to date|succeeded)\b(?!\s*[=/])(?!-)"
    r"|(?:\A|[\]:|>,;.] )(?:all )?(?:done|finished|complete)[.!]?\s*\Z"
    r"|\ball (?:[\w-]+ ){1,2}(?:done|finished|complete[d]?|evaluated|processed)[.!]?\s*\Z"
    r"|\b(?-i:SUCCESS)\b"
    r"|\"(?:event|status|msg|message|state)\": ?\""
    r"(?:training |job |run |all )?(?:finished|done|completed?|success)\b"
)
WRITTEN = re.compile(
    r"(?i)\b(?:wrote|saved|written|exported|published|stored|packed|dumped)\b(?: \w+){0,3}? "
    r"(?:to |in |as |into )?" + FILE + r"|" + FILE + r" (?:was |is |has been )?(?:written|saved|exported)\b"
    r"|\A\W*(?:\w+ ){0,3}(?:saved|written|exported|wrote|published)\b[ :].{0,80}"
    + FILE
    + r"|\b(?:best|final) (?:checkpoint|model|weights)\b.{0,20}?"
    + FILE
)
ALL_OF = re.compile(
    r"(?<![\w./-])([2-9]|\d{2,}) ?(?:of|/) ?\1 (?:[a-z-]+ )?(?!(?:attempts|tries|retries|elements|bytes|parts"
    r"|chunks|batches|samples|frames|seconds|minutes|was|has|this|status|bias)\b)[a-z]{2,}[a-rt-z]s\b"
    r"(?!.*\b(?:missing|failed|lost|skipped|refused|left|away|down|nan)\b)"
)
"""12 of 12 shards, 60/60 tickets: all of something."""
_TO_ITS_TOTAL = re.compile(r"(?i)\b(?:epoch|step|it(?:er)?(?:ation)?|round|stage)s?\W{0,3}(\d+) ?/ ?\1\b")
_SPOILT = re.compile(
    r"(?i)\b(?:not|never|in ?complete|crash\w*|emergency|interrupt\w*|partial\w*|rescue\w*|abort\w*|killed"
    r"|signal|exit(?:ed)? (?:code|status) [1-9]\d*"
    r"|(?:with|because of|due to) (?:an? |\d+ )?(?:error|failure|exception)s?"
    r"|rc=[1-9]\d*|warm-?up|epoch|step|it(?:er)?(?:ation)?|round|stage|phase|retry|attempt|loading|download\w*"
    r"|unfinished|half|clean\w*|tracker|wandb|previous|before)\b|\A\s*File |\AError|\bError:|Traceback"
)


def good_ends(file: LogFile, before: int = 0) -> list[int]:
    """The numbers of those last lines that tell of a good end, from the top. Raises OSError.

    `before`: a line. Then the last lines above it count. What stands there again and again with other numbers
    tells of a part: a checkpoint, say.
    """
    shown = [
        (number, line)
        for number, line in _without_ignored(last_lines(file))
        if line.strip() and number < (before or number + 1) and not _NOISE.match(line)
    ]
    told = zip([(0, b""), *shown], shown, strict=False)
    counted = [number for above, (number, line) in told if _tells(line) and not _is_empty(above[1], line)]
    if before:
        forms = {number: _DIGITS.sub(b"0", line) for number, line in shown}
        times = Counter(forms.values())
        counted = [number for number in counted if times[forms[number]] < _OFTEN]
    last = {number for number, _ in shown[-(_LAST_ABOVE if before else _LAST) :]}
    return [number for number in counted if number in last]


def _without_ignored(lines: Sequence[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """The lines without the exceptions that Python says it ignored, while it took the program down."""
    ignored = ends = False
    for number, line in lines:
        if _IGNORED.match(line):
            ignored, ends = True, False
        elif ignored and not ends:
            ends = line[:1].strip() != b"" and not line.startswith(b"Traceback ")
        else:
            ignored = False
            yield number, line


def _is_empty(above: bytes, line: bytes) -> bool:
    return is_empty_success(above + b"\n" + line, len(above) + 1, len(above) + 1 + len(line))


def says_it_ended_well(file: LogFile, last: int) -> bool:
    """Whether behind line `last` one line tells of a good end, and one of exit code 0. Raises OSError."""
    shown = [(number, line) for number, line in last_lines(file) if line.strip()][-_LAST:]
    words = [line.decode("utf-8", "replace") for number, line in shown if number > last]
    codes = [code for line in words for code in _EXIT.findall(line)]
    return bool(codes) and not any(map(int, codes)) and any(number > last for number in good_ends(file))


def says_exit_zero(file: LogFile, last: int) -> bool:
    """Whether behind line `last` the last line shown is a script's word of exit code 0. Raises OSError."""
    shown = [(number, line) for number, line in last_lines(file) if line.strip()][-1:]
    return any(number > last and _EXIT_ZERO.fullmatch(line.strip()) for number, line in shown)


def has_written(file: LogFile, last: int) -> bool:
    """Whether a line behind line `last` names a file that the program has written. Raises OSError."""
    words = {number: line.decode("utf-8", "replace") for number, line in last_lines(file)}
    return any(number > last and WRITTEN.search(words[number]) for number in good_ends(file))


def all_voices_tell(file: LogFile, last: int) -> bool:
    """Whether each logger that wrote above line `last` tells of a good end at the end. Raises OSError.

    A logger's voice is what stands between its clock and its level. What tells of it stands behind the line,
    or for other voices near it.
    """
    lines = [(number, line.decode("utf-8", "replace")) for number, line in last_lines(file)]
    voices = Counter(voice for number, line in lines if number < last and (voice := _voice(line)))
    known = {voice for voice, count in voices.items() if count >= _OFTEN}
    told = {_voice(line): number for number, line in lines[-_NEAR:] if _tells(line.encode())}
    return bool(known) and known <= told.keys() and max(told[voice] for voice in known) > last


def _voice(line: str) -> str:
    found = _LOGGED.match(line)
    return "" if found is None else f"{found['before']}|{found['after']}"


def _tells(line: bytes) -> bool:
    words = line[front(line) :].decode("utf-8", "replace")
    if len(line) > _LONGEST or _SPOILT.search(_TO_ITS_TOTAL.sub("", words)):
        return False
    return any(each.search(words) is not None for each in (_DONE, WRITTEN, ALL_OF))
