"""Process ends: where a text shows that a Python process has ended by its own mistake. Pure.

What stands behind such an end is another process's: another rank, the script's next command, the next start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from heapq import merge
from operator import attrgetter
from typing import NamedTuple

import re2

MODULE = b"<module>"
_RUN_AS_MODULE = b"_run_module_as_main"
_HEADLINE = b"Traceback (most recent call last):"
_PASSED_ON = b"Original " + _HEADLINE
_FIRST_FRAME = re.compile(rb' *\n  File "([^"\n]+)", line \d+, in ([^\n]+?) *\n')
_LINK = re.compile(
    rb"(?:During handling of the above exception, another exception occurred"
    rb"|The above exception was the direct cause of the following exception):"
)
# A hook that shows exceptions failed itself: Python prints its exception, and the first one again.
_HOOK = rb"Error in sys\.excepthook:|Original exception was:"
_CHAINED = re.compile(rb"(?:" + _LINK.pattern + rb"|" + _HOOK + rb")\s*\Z")
_LONGEST_MESSAGE = 16 * 1024
# torchrun's agent raises with a report of the workers that failed between two edges.
_REPORTED = b"ChildFailedError: "
_REPORT = re.compile(rb"(={20,}|\*{20,}) *\n(?:[^\n]*\n)*?\1 *\n")
# Ray's memory monitor lists the largest processes of the node, and ends with advice.
_SHORT_OF_MEMORY = b"node running low on memory"
_OF_THE_NODE = re.compile(rb"Memory on the node \(IP: [^\n]*\n(?:[^\n]*\n){1,24}?Refer to the doc[^\n]*\n")
_UNCAUGHT = re.compile(rb", in (?:<module>|_bootstrap) *\n")
# Rich's, whose lower edge stands above the exception.
_BOX = re.compile(
    rb"^\xe2\x95\xad[^\n]* Traceback \(most recent call last\) [^\n]*\n(?:\xe2\x94\x82[^\n]*\n)+"
    rb"\xe2\x95\xb0[^\n]*\n[^\n]*\n",
    re.MULTILINE,
)
_BOXED_MODULE = re.compile(rb"^\xe2\x94\x82 ([^\n:]+):\d+ in <module>", re.MULTILINE)
_LOGGED_ERROR = re.compile(rb"\b(?:ERROR|CRITICAL)\b")
_NO_SCRIPT = b": can't open file "
# The interpreter without a script, and argparse with a wrong command line.
_NEVER_BEGAN = re.compile(
    rb"^(?:\S*python[\d.]*: can't open file [^\n]*\n|(?P<program>[^\s:][^\n:]{0,80}): error: "
    rb"(?:unrecognized arguments:|the following arguments are required:|argument [^\n:]+: )[^\n]*\n)",
    re.MULTILINE,
)
_NOHUP = re.compile(rb"^nohup: ignoring input[^\n]*\n", re.MULTILINE)
# What bash says when a signal has ended the command of a script's line.
_LINE = b": line "
_SAID_BY_SHELL = re.compile(
    rb": line \d+: +\d+ (?:Hangup|Interrupt|Quit|Illegal instruction|Aborted|Bus error"
    rb"|Floating point exception|Killed|Segmentation fault|Terminated)(?: +\(core dumped\))? +([^\n]*)\n"
)
_SCRIPT = re.compile(rb"\S+\.py\b")
# Hydra leaves its own frames and the script's module out, and exits.
_OF_HYDRA = re.compile(rb"Error executing job with overrides: ")
_ONE_OF_MANY = (
    rb"(?i)%b\branks?\b%b|local_rank%b|world_size|torchrun|torch[./]distributed"
    rb"|elastic|\bnccl%b|\bgloo\b|mpi(?:run|exec)"
    rb"|\bsrun\b|deepspeed|horovod|\bpid=|SpawnProcess|\bprocess \d|multiprocessing%b"
    rb"|\bray\b"
)
# A module or a package that is loaded or installed is named with its version. "Learning to rank" is a field.
_BESIDE = (
    rb"(?<!learning to )",
    rb"(?!: -1)",
    rb"(?!\W{0,3}-1\b)",
    rb"(?!/\d|-cu\d)",
    rb"(?!/resource_tracker)",
)
_OF_MANY = re.compile(_ONE_OF_MANY % _BESIDE)
# RE2 reads a text of many megabytes at once, and has no lookahead.
_MAY_BE_OF_MANY = re2.compile(_ONE_OF_MANY % ((b"",) * len(_BESIDE)))


class ProcessEnd(NamedTuple):
    """Where a process has ended. `offset`, `number`: of the first line behind its message.

    `script`, `function`: those of a traceback's first frame; "" if the script never began. `sure`: whether
    nothing can have caught the exception.
    """

    script: bytes
    function: bytes
    begin: int
    offset: int
    number: int
    sure: bool


def process_ends(text: bytes) -> Iterator[ProcessEnd]:
    """The ends at the margin, in their order; of a chain of exceptions the last one only."""
    at, number = 0, 1
    found = (_raised(text), _boxed(text), _never_began(text), _told_by_shells(text))
    for end in merge(*found, key=attrgetter("begin")):
        low, high = sorted((at, end.offset))
        lines = text.count(b"\n", low, high)
        number += lines if end.offset > at else -lines
        at = end.offset
        yield end._replace(number=number)


def _raised(text: bytes) -> Iterator[ProcessEnd]:
    at = 0
    while (begin := text.find(_HEADLINE, at)) >= 0:
        at = begin + len(_HEADLINE)
        frame = _FIRST_FRAME.match(text, at)
        if frame is None or (begin and text[begin - 1 : begin] != b"\n"):
            continue
        at = _behind_the_message(text, frame.end())
        if not _is_chained(text, at):
            of_hydra = _OF_HYDRA.match(text, text.rfind(b"\n", 0, max(begin - 1, 0)) + 1) is not None
            function = MODULE if of_hydra else frame[2]
            sure = of_hydra or _UNCAUGHT.search(text, begin, at) is not None
            yield ProcessEnd(frame[1], function, begin, at, 0, sure)


def behind_the_only_module(text: bytes) -> int:
    """Where the line behind the text's only traceback, or chain of them, begins; 0 without one.

    Its first frame must be what runs a module. Nothing of the program can catch an exception there.
    """
    begin = text.rfind(_HEADLINE)
    frame = _FIRST_FRAME.match(text, begin + len(_HEADLINE)) if begin >= 0 else None
    if frame is None or frame[2] != _RUN_AS_MODULE:
        return 0
    chained = sum(1 for _ in _LINK.finditer(text))
    return _behind_the_message(text, frame.end()) if text.count(_HEADLINE) == chained + 1 else 0


def behind_the_logged(text: bytes) -> int:
    """Where the line behind the text's last traceback begins, if a logger's error announced it; 0 if not."""
    begin = text.rfind(_HEADLINE)
    above = text[:begin].rstrip(b"\n").rpartition(b"\n")[2] if begin > 0 else b""
    frame = _FIRST_FRAME.match(text, begin + len(_HEADLINE)) if _LOGGED_ERROR.search(above) else None
    return _behind_the_message(text, frame.end()) if frame else 0


def _is_chained(text: bytes, at: int) -> bool:
    """Whether the next traceback is the next one of a chain. A message may have many lines."""
    below = text.find(_HEADLINE, at, at + _LONGEST_MESSAGE)
    return below >= 0 and _CHAINED.search(text, max(at - 1, below - 200), below) is not None


def _boxed(text: bytes) -> Iterator[ProcessEnd]:
    for box in _BOX.finditer(text):
        module = _BOXED_MODULE.search(box[0])
        script, function = (module[1], MODULE) if module else (b"", b"?")
        yield ProcessEnd(script, function, box.start(), box.end(), 0, sure=module is not None)


def _never_began(text: bytes) -> Iterator[ProcessEnd]:
    for line in _NEVER_BEGAN.finditer(text):
        program = line["program"] or b""
        if program.endswith(b".py"):
            yield ProcessEnd(program, MODULE, line.start(), line.end(), 0, sure=True)
            continue
        function = b"" if _NO_SCRIPT in line[0] else b"?"  # a launcher may refuse its command line, too
        yield ProcessEnd(b"", function, line.start(), line.end(), 0, sure=True)


def _told_by_shells(text: bytes) -> Iterator[ProcessEnd]:
    at = 0
    while (begin := text.find(_LINE, at)) >= 0:
        at = begin + len(_LINE)
        said = _SAID_BY_SHELL.match(text, begin)
        if said is not None and (script := _SCRIPT.search(said[1])) is not None:
            yield ProcessEnd(script[0], MODULE, begin, said.end(), 0, sure=True)


def never_began(text: bytes, line: bytes) -> bool:
    """Whether a script refused its command line in this line, within another's work, and never began later.

    A person who sees such a refusal at the top of a file starts again, and the next start may append to it.
    """
    refused = _NEVER_BEGAN.match(line + b"\n")
    program = b"" if refused is None else refused["program"] or b""
    last = text.rfind(line)
    if not program.endswith(b".py") or last < 0 or text.find(program, last + len(line)) >= 0:
        return False
    return _NOHUP.sub(b"", text[:last].rpartition(b"usage:")[0]).strip() != b""


def _behind_the_message(text: bytes, at: int) -> int:
    """Where the line behind the traceback's last one begins. Frames are indented, the message is not.

    The message of an exception that torch passes on from a worker holds the worker's own traceback. That of
    torchrun's agent holds a report, and so does that of Ray's memory monitor.
    """
    while True:
        while at < len(text) and text[at : at + 1] in (b" ", b"\t"):
            at = text.find(b"\n", at) + 1 or len(text)
        last, at = at, text.find(b"\n", at) + 1 or len(text)
        report = _report_below(text, last, at)
        if report is not None:
            return report.end()
        if not text.startswith(_PASSED_ON, at):
            return at
        at = text.find(b"\n", at) + 1 or len(text)


def _report_below(text: bytes, last: int, at: int) -> re.Match[bytes] | None:
    """The report below the exception's first line, which begins at `last` and ends at `at`."""
    if text.find(_REPORTED, last, at) >= 0:
        return _REPORT.match(text, at, at + _LONGEST_MESSAGE)
    if text.find(_SHORT_OF_MEMORY, last, at) >= 0:
        return _OF_THE_NODE.match(text, at, at + _LONGEST_MESSAGE)
    return None


def speaks_of_many(text: bytes) -> bool:
    """Whether the text speaks of ranks, workers or launchers: several processes may have written it."""
    return any(_OF_MANY.match(text, found.start()) for found in _MAY_BE_OF_MANY.finditer(text))
