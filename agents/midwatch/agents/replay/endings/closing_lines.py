"""The closing lines: the failure that only the end of a saved log shows, because no rule knows its words.

A live watch learns from the scheduler how the job ended. A saved log ends where its program or its copy
ended. Thirteen ends speak for a failure all the same:

- A Python traceback whose exception is missing, or whose header is (`headless_tracebacks`).
- An error as the very last line, unless it is one item's of many (`item_errors`), or below its heading.
- Words of a failure in the last lines (`closing_words`).
- What a terminal or a shell prints when it ends a program.
- Step after step whose gradients are not finite, or that is skipped (`broken_gradients`).
- Rows of a table whose loss, or all that they hold, is no number (`closing_tables`).
- A loss scale that falls at each step (`falling_scale`).
- A request to end (`closing_requests`).
- A shell's word on what its script lacks, or the program's own before its first step (`closing_lacks`).
- Waiting for ranks or processes (`closing_waits`).
- A count of items of which none succeeded, whose program a shell missed, or that were all refused
  (`nothing_worked`).
- How the program is called, or the names that it knows, in place of an error (`closing_usage`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import NamedTuple

from midwatch.agents.replay.endings.broken_gradients import SKIPS, not_finite, skipped_steps
from midwatch.agents.replay.endings.closing_lacks import LACK, lack_at_end
from midwatch.agents.replay.endings.closing_requests import ASKED, asked_to_end
from midwatch.agents.replay.endings.closing_tables import (
    BROKEN_TABLE,
    VANISHED,
    broken_table,
    vanished_measures,
    vanished_numbers,
)
from midwatch.agents.replay.endings.closing_usage import (
    NAMES,
    USAGE,
    unknown_name_at_end,
    usage_at_end,
)
from midwatch.agents.replay.endings.closing_waits import closing_wait
from midwatch.agents.replay.endings.closing_words import kind_of, last_words
from midwatch.agents.replay.endings.crossed_lines import is_crossed
from midwatch.agents.replay.endings.cut_tracebacks import (
    Numbered,
    header_of,
    is_of_a_child_left,
    is_within_a_client,
    last_code,
    named_type,
    names_a_library_s_exception,
    says_all_is_done,
)
from midwatch.agents.replay.endings.error_headings import HEADED, error_below_a_heading
from midwatch.agents.replay.endings.falling_scale import FALLS, falling_scale
from midwatch.agents.replay.endings.headless_tracebacks import words_of_a_headless_one
from midwatch.agents.replay.endings.item_errors import last_is_of_an_item
from midwatch.agents.replay.endings.loud_streams import STAMPED, own_errors
from midwatch.agents.replay.endings.notebook_names import named_below, type_of
from midwatch.agents.replay.endings.nothing_worked import (
    LACKED,
    NOTHING,
    REFUSED,
    missed_by_each_item,
    nothing_worked,
    refused_each_item,
)
from midwatch.agents.replay.endings.said_at_any_end import before_the_last_word_of_others
from midwatch.agents.replay.reading.log_files import LogFile, last_lines
from midwatch.agents.replay.reading.powershell_folds import unfolded
from midwatch.streams.lines.launcher_prefix import front, grade
from midwatch.streams.lines.left_out import says_nothing
from midwatch.streams.lines.log_levels import goes_on, is_warning, stands_aside
from midwatch.streams.records import Hit

_ABOVE = 3
"""Lines above a traceback's header in which the program may say what it met."""
_CHILDREN = 16  # lines: each child of an interrupted program names itself
_LONGEST = 120
"""The most lines of errors that are read."""
_UNKNOWN = "exception"

CUT = "the log ends within a traceback"
CUT_NAME = "the log ends within the name of the exception"
HEADLESS = "the log ends with the frames and the words of an exception that nothing names"
NAMED = "the log ends with the exception that is named above its traceback"
SAID = "the log ends with an error that no rule knows"
WORDS = "the last lines tell of a failure in words that no rule knows"
PORTS = "the log ends where ports of the network failed, and no line says that they came back"
BROKEN = "the log ends in steps whose gradients are not finite"
LACKS = "the log ends with a shell's word on what its script lacks"
ENDED = "the log ends with what a terminal or a shell prints when a program is ended"

_LACKS = "script_goes_on_without"
_CONDA_LACKS = re.compile(
    rb"\bCommandNotFoundError: Your shell has not been properly configured .*'conda activate'"
)
_CONDA_ADVISES = re.compile(rb"\bYou may need to close and restart your shell after running 'conda init'")
_ADVICE = 32  # the most lines of a log that holds conda's advice on its shell and hardly more

_DIGITS = re.compile(rb"\d+")
# Python announces with these words that the program goes on behind the traceback, or only a thread ends.
# Ray tells so of its dashboard's agents.
_GOES_ON = re.compile(
    rb"Exception ignored |--- Logging error ---|Exception in thread |in atexit callback"
    rb"|\bThe agent on node \S+ failed with the following error:"
)
_SAYS_WHY = re.compile(
    rb"(?i)\b(?:error|fatal|fail(?:ed|ure)?|can ?not|could ?n[o']t|unable|abort(?:ed|ing)?|timed out|exceeded"
    rb"|refused|denied|invalid|corrupt(?:ed)?|killed|exception in (?!thread\b))\b"
)
# A warning and its line of code, a count of nothing, and libraries that register themselves twice.
_WARNED = re.compile(
    rb"\b\w*Warning: |\A\s*warnings\.warn\(|\b0 corrupt\b|\b(?i:unable|failed) to register\b"
    rb"|: cannot find name for (?:user|group) ID \d"
)
# What other loggers print: a record, or the level as one letter. TensorFlow registers its factories twice.
_LOUD = rb"error|critical|fatal|panic"
_STRUCTURED = re.compile(
    rb"\A\s*\{(?=.*\"(?:message|msg|event|error)\": ?\")"  # JSON
    rb"[^{]*?\"(?:level(?:_?name)?|lvl|log\.level|severity)\": ?\"(?i:" + _LOUD + rb")\""
    rb"|\A(?=.*\b(?:msg|message|event|err|error)=)(?:[\w.]+=(?:\"[^\"]*\"|[^\s\"]*) )*"  # logfmt
    rb"(?:level|lvl|severity)=\"?(?i:" + _LOUD + rb")\b"
    rb"|\A\[?[EF]\d{3,4} \d\d:\d\d:\d\d[.\d]* +(?:\d+ )?[\w./-]+:\d+\] (?!.*\bregister)"  # glog, c10
    rb"|\A(?:\[[\w.: -]+\] +)*[\w.-]+:\d+ +UCX +(?:ERROR|FATAL) "
)
_BEGINS = re.compile(
    rb"\A\W*(?:error: (?=.*\bgiv(?:ing|es|en) up\b)"
    rb"|Error(?: in| when| while|(?: occurr?ed)? during| \w+ing\b|: )|Fatal(?: error)?: "
    rb"|Failed to )(?! *\d)"
)
_NAME = re.compile(rb"(?:\w+\.)*[A-Z]\w*")
_WHOLE_NAME = re.compile(rb"(?:Error|Exception|Exit|Interrupt|Timeout|Warning|Fail(?:ed|ure)|Fault)\Z")
_MEASURED = re.compile(rb"[:=] ?\d[\d.]*%?\s*\Z")
# Whole lines. In the middle of a log they may be anything, so no rule looks for them.
_ENDED = (
    (re.compile(rb"\s*(?:\^[CZ\\])+\s*|--KeyboardInterrupt--\s*"), "user_interrupt"),  # the last is pdb's
    (re.compile(rb"(?:Quit|User defined signal [12])(?: \(core dumped\))?\s*"), "cancelled"),
    (re.compile(rb"(?:Aborted|Stack overflow)\s*"), "native_crash"),
    (re.compile(rb"\s*[Oo]ut of memory[.!]?\s*"), "host_oom"),
    # A terminal prints it behind whatever stands in the line, mostly a bar.
    (re.compile(rb".*(?:\bit/s|s/it\b|(?i:loss|step|epoch)\b).*[^\s^]\s*(?:\^[C\\])+\s*"), "user_interrupt"),
)
_INTERRUPTED = re.compile(rb"\A(?:\^C)+(?:Traceback |Process \w+-\d+:)")
# Some collectors stamp all that a program writes to stderr as an error.
_NO_ERROR = re.compile(
    rb"\d%\||\d(?:it/s|s/it)\b|\b[IW] ?\w*/\S+\.(?:cc|cpp):\d+\]|\b\w*Warning: "
    rb"|\b(?i:step|epoch|iter\w*|loss)\b[ =:\"]+\d+(?:\.\d+)?(?:[ ,}]|\Z)|\bresuming normal operation\b"
    rb"|[\s\]:]INFO[\s\[:]|\b0 errors\b|\A[\W\d]*ERROR\W*\Z"  # its own level, valgrind's count, no words
)
# torch tries both kinds of address, and the error comes only behind the last try.
_PORT_TAKEN = re.compile(
    rb"\[c10d\] The server socket has failed to (?:listen on|bind to) \S+ \(errno: 98 - Address already"
)
# One port may flap. Those of many processes at the end are down.
_PORT_FELL = re.compile(rb"\bNCCL WARN NET/IB : (?:\S+ )?Got async (?:error )?event ?: port error")
_LEAST_PORTS = 4


class ClosingFailure(NamedTuple):
    """The line that tells most of such an end. `how`: one of the words from `CUT` to `ENDED`."""

    path: str
    number: int
    error_type: str
    how: str


def closing_failure(
    file: LogFile, hits: Sequence[Hit], stepped: int = 0, *, trained: bool = False, done: bool = False
) -> ClosingFailure | None:
    """The failure in which the file ends, if its end looks like one.

    `hits`: all of the file. A line that a rule knows is no unknown error. Above a traceback it gives its
    type, though its writer calls it a warning. `stepped`: the last line that printed a step; 0 without one.
    `trained`: whether any file of the job printed the number of a step. `done`: whether it made its last one.
    """
    lines = unfolded(last_lines(file))
    while lines and says_nothing(lines[-1][1]):
        lines.pop()
    known = _with_repeated({hit.line.number: hit for hit in hits if hit.line.path == file.path}, lines)
    header, named = header_of(lines), named_below(lines)
    found: _Found | None
    if named is not None and named[0] not in known:
        found = named[0], type_of(named[1]) or _UNKNOWN, NAMED
    elif header is not None:
        over = done or says_all_is_done(lines[:header])
        left = over and is_of_a_child_left(lines[max(header - _ABOVE, 0) : header], lines[header:])
        found = None if left else _cut(lines, header, known)
    else:
        own = before_the_last_word_of_others(lines)
        of_an_item = bool(own) and is_error(own[-1][1]) and last_is_of_an_item(own)
        found = (
            closing_wait(own, stepped=trained)
            or _without_a_header(own, stepped)
            or _lacked_by_a_script(own, known, trained=trained)
            or _in_broken_numbers(own)
            or _in_a_request(own)
            or (None if done else _below_a_heading(own, known, stepped))
            or (None if of_an_item else _ended_or_said(own, known, stepped))
            or _without_success(lines, known)
            or (None if trained else _never_began(lines, own, known))
            or (None if trained or done or stepped else _lacked(own, known))
        )
    return None if found is None else ClosingFailure(file.path, *found)


def _with_repeated(known: Mapping[int, Hit], lines: Numbered) -> dict[int, Hit]:
    """Also those lines that repeat a known one but for its prefix and numbers: of a storm few are hits."""
    forms = {_form(hit.line.text.encode()): hit for hit in known.values()}
    repeated = {number: forms[form] for number, line in lines if (form := _form(line)) in forms}
    return {**repeated, **known}


def _form(line: bytes) -> bytes:
    return _DIGITS.sub(b"0", line[front(line) :].strip())


_Found = tuple[int, str, str]
"""Number, error type and `how` of a closing failure."""


def _cut(lines: Numbered, header: int, known: Mapping[int, Hit]) -> _Found | None:
    """The failure whose traceback begins at the header."""
    above = lines[max(header - _ABOVE, 0) : header]
    if any(_GOES_ON.search(line) for _, line in above):
        return None
    if ended := _ended_above(lines[max(header - _CHILDREN, 0) : header + 1], above):
        return ended
    number, line = lines[header]
    if named := named_type(line):
        return number, named, CUT
    error_type = "communication" if is_within_a_client(lines[header:]) else _UNKNOWN
    for number, line in reversed(above):
        hit = known.get(number)
        if hit is not None and hit.aside:
            return number, hit.error_type, CUT
        if _says_why(line):
            return number, error_type, CUT
    tells = names_a_library_s_exception(lines[header][1])
    return lines[header][0] if tells else last_code(lines[header:]), error_type, CUT


def _ended_above(children: Numbered, above: Numbered) -> _Found | None:
    """Who ended the program above a traceback: a person, as each child says, or a request to end."""
    for number, line in children:
        if _INTERRUPTED.match(line):
            return number, "user_interrupt", ENDED
    return _in_a_request(above)


def _says_why(line: bytes) -> bool:
    """Whether a line above a traceback tells what the program met, not what it only warned of."""
    if _SAYS_WHY.search(line) is None or _WARNED.search(line) is not None:
        return False
    return not (is_warning(line) or stands_aside(line) or goes_on(line))


def _ended_or_said(lines: Numbered, known: Mapping[int, Hit], stepped: int) -> _Found | None:
    """What a terminal or a shell printed at the very end, or the errors in which the lines end."""
    number, last = lines[-1] if lines else (0, b"")
    for pattern, error_type in _ENDED:
        if number not in known and pattern.fullmatch(last[front(last) :]):
            return number, error_type, ENDED
    if len(lines) > 1 and all(_PORT_TAKEN.search(line) for _, line in lines[-2:]):
        return lines[-2][0], "port_in_use", WORDS
    fell = _fallen_ports(lines)
    if len(fell) >= _LEAST_PORTS:
        return fell[-1], "nccl", PORTS
    broken = not_finite(lines)
    if broken is not None:
        return broken, "numerical_instability", BROKEN
    first = _first_of_the_last_errors(lines, known)
    if first is not None:
        words = next(line for number, line in lines if number == first)
        return first, known[first].error_type if first in known else kind_of(words) or _UNKNOWN, SAID
    told = {number for number, hit in known.items() if not _may_be_the_last(hit)}
    found = last_words(lines, told, stepped)
    return None if found is None else (*found, WORDS)


def _without_a_header(lines: Numbered, stepped: int) -> _Found | None:
    """The words of a traceback without its header, if the lines end in them."""
    words = words_of_a_headless_one(lines)
    if words is None or words[1] != lines[-1][0] or words[0] < stepped:
        return None
    said = next(line for number, line in lines if number == words[0])
    return words[0], kind_of(said) or _UNKNOWN, HEADLESS


def _in_a_request(lines: Numbered) -> _Found | None:
    number = asked_to_end(lines)
    return None if number is None else (number, "cancelled", ASKED)


def _without_success(lines: Numbered, known: Mapping[int, Hit]) -> _Found | None:
    found = nothing_worked(lines, known)
    return None if found is None else (*found, NOTHING)


def _never_began(lines: Numbered, own: Numbered, known: Mapping[int, Hit]) -> _Found | None:
    if (missed := missed_by_each_item(lines, known)) is not None:
        return (*missed, LACKED)
    if (refused := refused_each_item(lines)) is not None:
        return refused, "config", REFUSED
    for found, how in ((usage_at_end, USAGE), (unknown_name_at_end, NAMES)):
        if (number := found(own)) is not None:
            return number, "config", how
    return None


def _lacked(lines: Numbered, known: Mapping[int, Hit]) -> _Found | None:
    found = lack_at_end(lines)
    return None if found is None or found[0] in known else (*found, LACK)


def _below_a_heading(lines: Numbered, known: Mapping[int, Hit], stepped: int) -> _Found | None:
    found = error_below_a_heading(lines)
    if found is None or found[0] in known or found[0] < stepped:
        return None
    return found[0], kind_of(found[1]) or _UNKNOWN, HEADED


def _in_broken_numbers(lines: Numbered) -> _Found | None:
    kinds = (
        (broken_table, BROKEN_TABLE),
        (vanished_numbers, VANISHED),
        (vanished_measures, VANISHED),
        (falling_scale, FALLS),
        (skipped_steps, SKIPS),
    )
    for found, how in kinds:
        if (number := found(lines)) is not None:
            return number, "numerical_instability", how
    return None


def _lacked_by_a_script(lines: Numbered, known: Mapping[int, Hit], *, trained: bool) -> _Found | None:
    """The very last line, if a shell says there what its script lacks. Under `set -e` nothing follows.

    Conda's own word on its shell is many lines long, and no program but the script stands above.
    """
    number, last = lines[-1] if lines else (0, b"")
    if not trained and len(lines) <= _ADVICE and _CONDA_ADVISES.search(last):
        return next(((number, "config", LACKS) for number, line in lines if _CONDA_LACKS.search(line)), None)
    hit = known.get(number)
    if trained or hit is None or hit.rule != _LACKS:
        return None
    return number, hit.error_type, LACKS


def _fallen_ports(lines: Numbered) -> list[int]:
    """The numbers of those last lines in which NCCL tells of a port that is down, from the end."""
    told = ((number, line) for number, line in reversed(lines) if line.strip())
    return [number for number, _ in takewhile(lambda each: _PORT_FELL.search(each[1]), told)]


def _first_of_the_last_errors(lines: Numbered, known: Mapping[int, Hit]) -> int | None:
    """The number of the first line of those errors, without any other line, in which the lines end."""
    run: list[tuple[int, bytes]] = []
    above = b""
    for number, line in reversed(lines[-_LONGEST:]):
        if says_nothing(line):
            continue
        told = number in known and not _may_be_the_last(known[number])
        if told or stands_aside(line) or goes_on(line) or not is_error(line):
            above = line
            break
        run.append((number, line))
    errors = own_errors(run, above)
    return errors[-1][0] if errors else None


def _may_be_the_last(hit: Hit) -> bool:
    """Whether its rule knows only that its writer complains. A job may go on behind that; here none did."""
    return hit.role == "context" and hit.fallback and hit.severity != "info"


def ends_within_a_name(file: LogFile, number: int, line: str) -> bool:
    """Whether the file ends in this line of that number, without a line feed, within an exception's name.

    What the name would have been nobody knows, so neither does its type. Raises OSError.
    """
    words = line.encode()
    name = _NAME.fullmatch(words[front(words) :].strip())
    if name is None or _WHOLE_NAME.search(name[0]) or file.tail().endswith(b"\n"):
        return False
    return last_lines(file)[-1][0] == number


def is_error(line: bytes) -> bool:
    """Whether its writer calls the line an error: by a logger's level, a record's, or its first word."""
    words = line[front(line) :]
    begins = _BEGINS.match(words) is not None and _MEASURED.search(line) is None and not is_warning(line)
    stamped = STAMPED.match(line[grade(line) :]) is not None and _NO_ERROR.search(line) is None
    named = _STRUCTURED.match(words) is not None or is_crossed(words)
    return begins or stamped or named
