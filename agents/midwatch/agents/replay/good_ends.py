"""Good ends: where the last lines of a saved log tell of work that is done, in a program's own words. Pure.

A script prints such words behind a program that failed, too. So they prove nothing by themselves: the program
that got over its failure must have printed them.
"""

from __future__ import annotations

import re

from midwatch.agents.replay.log_files import LogFile, last_lines
from midwatch.streams.lines.launcher_prefix import front

_LAST = 6
"""Lines from the end that may tell of it, blank ones not counted."""
_LONGEST = 400
_FILE = (
    r"[\w./~{}=-]*[\w}](?:\.(?:pt|pth|npz|npy|jsonl?|csv|tsv|bin|safetensors|h5|ckpt|pkl|onnx|gz|parquet|txt|html?"
    r"|tar|md|model|msgpack|ya?ml)\b|/)"
)
_OF_THE_WHOLE = (
    r"(?:(?:the|all|whole|everything|training|fine-?tuning|pre-?training|job|run|fit|fitting|search|sweep|notebook"
    r"|pipeline|evaluation|solver|bundle|script|experiment|optimi[sz]ation|inference|export|conversion|indexing"
    r"|simulation|benchmark|study|tasks?|epochs?|steps|targets|rounds|folds|stages|generations|\d+)[ :]+)"
)
_DONE = re.compile(
    r"(?i)(?:\A|[\]:|>] |- )\W*" + _OF_THE_WHOLE + r"{0,4}(?:is |are |was )?(?:successfully )?"
    r"(?:done|finished|completed?|ended|over|evaluated|processed|up to date|succeeded)\b(?!\s*[=/])(?!-)"
    r"|(?:\A|[\]:|>,;.] )(?:all )?(?:done|finished|complete)[.!]?\s*\Z"
    r"|\bSUCCESS\b"
    r"|\"(?:event|status|msg|message|state)\": ?\""
    r"(?:training |job |run |all )?(?:finished|done|completed?|success)\b"
)
_WRITTEN = re.compile(
    r"(?i)\b(?:wrote|saved|written|exported|published|stored|packed|dumped)\b(?: \w+){0,3}? "
    r"(?:to |in |as |into )?" + _FILE + r"|" + _FILE + r" (?:was |is |has been )?(?:written|saved|exported)\b"
    r"|\A\W*(?:\w+ ){0,3}(?:saved|written|exported|wrote|published)\b.{0,80}" + _FILE
)
_WHOLE = re.compile(r"(?i)\b(?:epoch|step|it(?:er)?(?:ation)?|round|stage)s?\W{0,3}(\d+) ?/ ?\1\b")
_SPOILT = re.compile(
    r"(?i)\b(?:not|never|in ?complete|crash\w*|emergency|interrupt\w*|partial\w*|rescue\w*|abort\w*|killed"
    r"|signal|exit(?:ed)? (?:code|status) [1-9]\d*"
    r"|(?:with|because of|due to) (?:an? |\d+ )?(?:error|failure|exception)s?"
    r"|rc=[1-9]\d*|warm-?up|epoch|step|it(?:er)?(?:ation)?|round|stage|phase|retry|attempt|loading|download\w*"
    r"|unfinished|half|clean\w*|tracker|wandb|previous|before)\b|\A\s*File |\AError|\bError:|Traceback"
)


def good_ends(file: LogFile, before: int = 0) -> list[int]:
    """The numbers of those last lines that tell of a good end, from the top. Raises OSError.

    `before`: a line. Then the last lines above it count.
    """
    shown = [
        (number, line)
        for number, line in last_lines(file)
        if line.strip() and number < (before or number + 1)
    ]
    return [number for number, line in shown[-_LAST:] if _tells(line)]


def _tells(line: bytes) -> bool:
    words = line[front(line) :].decode("utf-8", "replace")
    if len(line) > _LONGEST or _SPOILT.search(_WHOLE.sub("", words)):
        return False
    return _DONE.search(words) is not None or _WRITTEN.search(words) is not None
