"""The line above a traceback: whether it says that its program gets over the exception below. Pure."""

from __future__ import annotations

import re

from midwatch.streams.lines.log_levels import got_over

_GETS_OVER_IT = re.compile(
    rb"(?i:\b(?:retrying|will (?:be )?retr(?:y|ied)|will be (?:ignored|skipped)|falling back)\b)"
    rb"|(?:\A|\] )Could not load bitsandbytes native library: "  # it goes on without it, until it is used
)
# A data set counts what it leaves out. That line is not about the exception below it.
_LEAVES_OUT = re.compile(
    rb"\b\d+ (?:samples|examples|sentences|sequences|records|utterances|images|files|rows) "
    rb".{0,200}\bwill be (?:ignored|skipped)\b"
)
# A message that is complete in one line: it prints no exception below, so one that stands there is another's.
_TELLS_IT_ALL = re.compile(
    rb"\bRetrying \(Retry\(total=|\bstep creation (?:temporarily|still) disabled, retrying"
    rb"|\bencountered .{0,80}, retrying request"
    rb"|\bsending step completion message directly to slurmctld, retrying"
    rb"|\A\s*Retrying in \d+ seconds\s*\Z"  # TraCI, until its simulator listens
    rb"|\bjaxlib is not installed\. Falling back to cpu\."
)
# A record may quote the exception that it is about: `ToyError('no paint'), trying once more`.
_QUOTED = re.compile(rb"\b(\w+(?:Error|Exception))\(['\"]")


def gets_over_it(lead: bytes, words: bytes) -> bool:
    """Whether the line `lead` above a traceback tells of a retry, or of what is left out, for its exception.

    `words`: the traceback's last line.
    """
    if _GETS_OVER_IT.search(lead) is None and not got_over(lead):
        return False
    if _LEAVES_OUT.search(lead) is not None or _TELLS_IT_ALL.search(lead) is not None:
        return False
    quoted = _QUOTED.search(lead)
    return quoted is None or quoted[1] in words
