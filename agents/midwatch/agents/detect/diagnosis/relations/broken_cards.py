"""Broken cards: the driver says that a card failed. What CUDA raised on its node follows from that. Pure.

A kernel's log holds all since the boot, so what it said days before its last word is of other jobs.
"""

from __future__ import annotations

import re
from collections import defaultdict

from midwatch.agents.detect.diagnosis.candidates import NotRoot, RootCandidate, beside, consequence
from midwatch.agents.detect.diagnosis.relations.surroundings import Surroundings
from midwatch.agents.detect.line_order import in_order, maybe_earlier
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Hit, Line

_RAISED = ("cuda_illegal_access", "cuda_launch_failed", "cublas_cudnn_error", "cuda_device_unavailable")
_OF_THE_CALL = re.compile(
    r"_(?:NOT_SUPPORTED|INVALID_VALUE|BAD_PARAM|ARCH_MISMATCH)\b|Frontend error|[Uu]nable to find|algorithm"
)
"""Words with which a library refuses a call. No card that failed brings them about."""
_DRIVER = ("xid_hardware", "xid_nvlink_fatal", "gsp_silent", "gpu_lost")
"""Rules of the driver's word on a card. Xids that a program's bad address causes are none of them."""
_KERNEL = "NVRM: "
_OF_THE_HOST = re.compile(r"BUG: |Oops: ")
_LONG_BEFORE = 86_400.0
"""Seconds. Two zones lie less than a day apart, so an older time is that of another run."""


def raised_by_a_broken_card(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """A kernel or a library of CUDA failed, and the driver says that a card of the node did.

    The kernel's log is often printed behind the training's, by an epilog or in a file of its own. So the
    driver's word counts wherever it stands, but not with a time of days before.
    """
    if hit.role != "cause" or hit.rule not in _RAISED or _OF_THE_CALL.search(hit.line.text) is not None:
        return None
    word = _word_behind(hit, around)
    return None if word is None else consequence(hit, NotRoot("card failed", word))


def said_days_before(hit: Hit, around: Surroundings) -> RootCandidate | None:
    """The driver said it, and in the same file something else a day after that or more."""
    if _KERNEL not in hit.line.text or (last := around.once(_last_words).get(hit.line.file)) is None:
        return None
    printed, at = _printed(hit.line, last.line.time), _printed(last.line, last.line.time)
    if printed is None or at is None or at - printed <= _LONG_BEFORE:
        return None
    return beside(hit, NotRoot("days before", last.line))


def _last_words(around: Surroundings) -> dict[tuple[str, str], Hit]:
    """By file, the driver's last word that the file shows."""
    said = (hit for hit in around.hits if _KERNEL in hit.line.text)
    return {hit.line.file: hit for hit in sorted(said, key=lambda each: each.line.number)}


def _printed(line: Line, read: float) -> float | None:
    return printed_time(line.text.encode(), read_at=read + _LONG_BEFORE)


def _word_behind(hit: Hit, around: Surroundings) -> Line | None:
    """The driver's word that may stand behind the line. One that certainly stands before is a root itself."""
    for word in around.once(_words).get(hit.line.node, ()):
        if maybe_earlier(hit.line, word.line) and not _is_old(word.line, hit.line):
            return word.line
    return None


def _words(around: Surroundings) -> dict[str, list[Hit]]:
    """By node, the driver's last word on a card in each file. A kernel may repeat it thousands of times."""
    last: dict[tuple[str, str], Hit] = {}
    for hit in around.causes:
        if hit.rule not in _DRIVER or _OF_THE_HOST.search(hit.line.text) is not None:
            continue
        if (before := last.get(hit.line.file)) is None or before.line.number < hit.line.number:
            last[hit.line.file] = hit
    found: dict[str, list[Hit]] = defaultdict(list)
    for hit in sorted(last.values(), key=in_order):
        found[hit.line.node].append(hit)
    return found


def _is_old(word: Line, line: Line) -> bool:
    """Whether the word was written long before the line. `dmesg -T` at an end prints all since the boot."""
    printed = _printed(word, line.time)
    return printed is not None and line.time - printed > _LONG_BEFORE
