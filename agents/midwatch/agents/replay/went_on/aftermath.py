"""The aftermath: what a log shows behind its last failure line. A program that goes on had not failed.

A live watch sees the end of the job itself. A saved log shows only its lines, so a long ordinary rest speaks
against an end. How much of it counts, the failure tells (`Weight`):

- Only steps undo the word of a scheduler, a kernel, a shell or a launcher that the job or a task has ended. A
  scheduler's also counts no more where lines with a clock follow that it printed minutes later.
- A program gets over an optional import or a stall. So all ordinary lines count while it has made no step,
  unless an exception left the script's module.
- Behind any other failure monitors, epilogs and waiting ranks repeat a few forms. So only the forms count,
  unless the next training prints its steps among the lines.
- Behind the steps an exception that leaves the script's module, or the watchdog, ends a process. Another
  program may print what it likes there, so only steps undo it, or the drawings of the job's own training bar.

Listings, waiting and monitors are no work, whatever failed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice, pairwise
from typing import Literal, NamedTuple

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.reading.printed_times import last_printed
from midwatch.agents.replay.went_on.monitors import is_of_a_monitor, without_lists
from midwatch.streams.lines.launcher_prefix import front
from midwatch.streams.lines.times import printed_time
from midwatch.streams.records import Hit, Hits, Progress
from midwatch.streams.records.error_types import family

ENOUGH = 60
"""Ordinary lines behind a failure that show that the program went on. Each drawing of a bar counts as one."""
ENOUGH_FORMS = 40
"""The same of lines that differ in more than their numbers."""

Weight = Literal["nothing", "bars", "forms", "lines", "workers"]
"""What counts behind a failure. `workers`: lines, those of Ray's workers too."""
_BEHIND_A_SHELL = 16  # lines: no script says so much behind its only command
_STEPS = 4  # different ones behind a failure, that show that a training went on
_READ = 400
_AGAIN = 6  # times that a program said the same words, and
_FEW = 5  # ordinary lines behind each time, that show that it gets over them
_READ_BEFORE = 2000
_NEAR = 20  # lines above a line in which work stands
_TIMED = 80  # lines above a line in which its time stands: those of a traceback have none
GONE = 120.0
"""Seconds after which nothing is left of a job that a scheduler has ended."""

# Stacks, dumps and summaries follow an end. They are no work that goes on.
_OF_THE_END = re.compile(
    r"\A(?:\s|$|-+> ?\d+ |\d+# |[\W\d_]*\Z)"
    r"|\A.{0,40}?(?:frame #\d+|#\d+ +0x|@ +0x|File \"|Traceback|wandb:|0x[0-9a-f]{6})"
    r"|\A[0-9a-f]{6,}-[0-9a-f]{6,} |\*\*\* |\bThread 0x|\bTBE Subprocess\["  # CANN's compilers outlive it
    r"|\bscripts\.py:\d+ -- (?:Killed|Attempted to stop|Send termination request to|Stopped) "  # ray stop
    r"|\Aprofiling:\S+\.gcda:"  # gcov of an instrumented Python, at its exit
    r"|\(\S*\) ?\[0x[0-9a-f]+\]\s*\Z|\(\w+\.(?:java|scala):\d+\)"  # glibc's backtrace_symbols, the JVM
    r"|(?:Unresolved object in checkpoint|A checkpoint was restored \(e\.g\. tf\.train)"  # of TF
    r"|\bbfc_allocator\.cc:\d+\]|\A(?:Limit|(?:Max)?InUse|NumAllocs|MaxAllocSize): +\d"
)
# What a script lists when its program has ended: files, packages, variables, cards. And who only waits.
_LISTED = re.compile(
    r"\A\s*(?:(?:removed|deleted|copied|deleting|removing)(?: directory:?)? [\"'`\u2018/]"  # rm -v, rsync
    r"|[\"'\u2018]?/?[\w.@+=-]+(?:/[\w.@+=-]+)+/?[\"'\u2019]?(?: -> \S+)?\s*\Z"  # tar, rsync, cp -v
    r"|[dlcbps-](?:[r-][w-][xsStT-]){3}[.+@]? "  # ls -l
    r"|(?:\[(?:pip3?|conda)\] )?[\w.-]+(?:==\S+| @ (?:file|git|https?)\S+)\s*\Z"  # pip freeze
    r"|(?:declare -x |export )?[A-Z_][A-Z0-9_]*="  # env
    r"|[+|].*(?:NVIDIA-SMI|\d+MiB / +\d+MiB)"
    r")|(?i:\bwaiting\b)"
)

# A bare number with a fraction: what a loop prints of its loss. Dumps print whole or hexadecimal numbers.
_LOSS = re.compile(r"\A\s*-?\d+\.\d+(?:e-?\d+)?\s*\Z")
_BAR = re.compile(r"\A(?P<label>.*?)\d+%\|(?:[^|]*\| *\S+?/(?P<total>\S+))?")
_OF_TRAINING = re.compile(r"(?i)\A\W*(?:\Z|(?:epochs?|steps?|iter\w*|train\w*|episode)\b)")
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):?\s*\Z")
_OF_THE_SCRIPT = re.compile(r"\A\s+File \"[^\"]*\", line \d+, in (?:<module>|_run_module_as_main)\s*\Z")
_FRAME = re.compile(r"\A\s+File \"")
_NOT_CAUGHT = re.compile(
    r", in (?:<module>|<cell line: \d+>|_run_module_as_main|_bootstrap\w*|spawn_main|_wrap|run"
    r"|\w*worker\w*)\s*\Z"
)
_LONGEST_TRACEBACK = 120
_OF_A_TRIAL = re.compile(
    r"(?i)\A[\s\W]*(?:trial|config(?:uration)?|combination|candidate|fold|grid point) ?(?:#?\d+ )?"
    r"(?:has )?failed(?: with)?: (?:\w+\.)*\w+(?:Error|Exception)\b"
)
# `str` of urllib's exception, where Python's own traceback prints its name in front.
_OF_A_REQUEST = re.compile(r"\A\s*<urlopen error .*>\s*\Z")
_DIGITS = re.compile(r"\d+")
_OF_ONE_OF_MANY = re.compile(r"(?i)\brank ?\d|\bpid=|\A\s*\d+: |\A\[\d")
_WHO = re.compile(r"\[rank\d+\]|\[\w*\d(?:,[\w:-]+)*\]|\A\s*\d+: |pid=\d+")
_OF_A_TRACEBACK = re.compile(r"\s+\S|.*\bFile \"|\s*[\^~]+\s*\Z")
# A bar that is drawn anew stands behind the one before in the same line.
_DRAWN_ANEW = re.compile(r"\r+(?=[^\r\n])")

_STRAY_WORDS = {"option_as_command", "letter_as_command"}
_OF_A_SHELL = {*_STRAY_WORDS, "shell_cannot_start"}
_SYNTAX = re.compile(r": [Ss]yntax error\b")
# Only a login shell has the dash.
_TYPED = re.compile(r"\A-(?:ba|z|k|da)?sh: [^:]{1,60}: (?:command )?not found\Z")


def is_stray(hit: Hit, *, trained: bool) -> bool:
    """Whether a shell took for a command what is none, or found a mistake behind a training it had run.

    What a person types after a run is of no run.
    """
    if hit.rule != "shell_cannot_start":
        return hit.rule in _STRAY_WORDS
    text = hit.line.text
    return _TYPED.match(text.strip()) is not None or (trained and _SYNTAX.search(text) is not None)


# What a program may try and get over, though it raises an exception or warns of a stall.
_TRIED = ("code", "stall")
_ENDED = ("preemption", "cancelled", "slurm_failure")
_OF_LAUNCHERS = ("slurm", "scheduler", "torchrun", "deepspeed", "mpi", "lightning", "kubernetes")
# Damage that a library finds in its own process may be none, so it is no such word.
_CRASHED = re.compile(
    r"(?i)segmentation fault|segfault|core dumped|\bsignal\b|\bSIG[A-Z]|\baborted\b|bus error"
)
# Torch's watchdog takes the process with it.
_TAKEN_DOWN = re.compile(
    r"watchdog thread (?:got|terminated with|caught) (?:an )?exception|taking the entire process down"
)
_KILLED = re.compile(r"(?i)\bkill|\boom[ _-]|out[ _]of[ _]memory")


def tells_an_end(hit: Hit) -> bool:
    """Whether the line is the word of somebody outside that the job, a task or a process has ended."""
    if hit.error_type in _ENDED or hit.mode == "timeout":
        return True
    if hit.error_type == "native_crash":
        return _CRASHED.search(hit.line.text) is not None
    if hit.error_type == "host_oom":
        return _KILLED.search(hit.line.text) is not None
    if hit.error_type == "hardware":
        return hit.mode == "crash"
    return hit.role == "consequence" and hit.fallback and hit.subsystem in _OF_LAUNCHERS


class LastFailure:
    """The last line of each file in which a failure's rule hit, and the last that printed a step."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.last_step: dict[str, int] = {}
        self._rules: set[str] = set()
        self._first_step: dict[str, int] = {}
        self._steps_behind: dict[str, set[tuple[int, str]]] = {}

    def take(self, record: Hits) -> None:
        """Note the failure lines of one record, those that are only counted included."""
        for hit in record.hits:
            if hit.role in ("cause", "consequence"):
                self._rules.add(hit.rule)
                self._note(hit.line.path, hit.line.number)
        for more in record.counts:
            if more.rule in self._rules:
                self._note(more.path, more.last_number)
        for each in record.progress:
            if each.shows in ("step", "training"):
                self._take_steps(each)

    def _take_steps(self, column: Progress) -> None:
        last, path = self.numbers.get(column.path, 0), column.path
        behind = self._steps_behind.setdefault(path, set())
        counts = column.counts or ("",) * len(column.numbers)
        for number, step, count in zip(column.numbers, column.steps, counts, strict=True):
            self._first_step[path] = min(number, self._first_step.get(path, number))
            self.last_step[path] = max(number, self.last_step.get(path, number))
            if number > last and len(behind) < _STEPS:
                behind.add((step, count))

    def weight_behind(self, file: LogFile, held: Iterable[Hit], *, trained: bool) -> Weight:
        """What counts behind the last failure of a file. `held`: all failures that no later step has undone.

        `trained`: the job made a step. One that it made before the failure shows itself again if it goes on.
        Ranks that lag print a step or two more, and the same ones.
        """
        hits = list(held)
        if len(self._steps_behind.get(file.path, ())) >= _STEPS:
            return "lines"  # a loop that began anew, so its steps alone undo nothing
        ends = list(filter(tells_an_end, hits))
        if ends:
            cancelled = all(hit.error_type in _ENDED for hit in ends)
            return "forms" if cancelled and _written_later(file, self.numbers[file.path]) else "nothing"
        trained = trained and self._has_steps_before()
        if trained and (
            any(_TAKEN_DOWN.search(hit.line.text) for hit in hits)
            or leaves_the_script(file, self.numbers[file.path])
        ):
            return "bars"
        if hits and all(hit.rule in _OF_A_SHELL for hit in hits):
            return "workers"  # a shell goes on behind what it cannot start
        tried = all(family(hit.error_type) in _TRIED for hit in hits)
        ended = leaves_the_script(file, self.numbers[file.path])
        return "lines" if tried and not trained and not ended else "forms"

    def _has_steps_before(self) -> bool:
        """Whether a file shows the training in front of its last failure, or has no failure."""
        return any(first < self.numbers.get(path, first + 1) for path, first in self._first_step.items())

    def _note(self, path: str, number: int) -> None:
        if number > self.numbers.get(path, 0):
            self.numbers[path] = number
            self._steps_behind.pop(path, None)


def has_work_above(file: LogFile, last: int) -> bool:
    """Whether a program has written above line `last`: some ordinary lines stand there."""
    return sum(1 for _ in ordinary(_lines_above(file, last, _READ))) >= _NEAR


def _written_later(file: LogFile, last: int) -> bool:
    """Whether the file's last lines were printed minutes behind its line `last`, by their own clocks.

    What a scheduler ends is gone after half a minute. So these lines are of another job, or it had not ended.
    """
    passed = seconds_behind(file, last)
    return passed is not None and passed > GONE


def seconds_behind(file: LogFile, last: int) -> float | None:
    """The time from line `last` to the latest one behind it, by the clocks of the lines; None without clocks.

    A clock without a year may be read as an earlier year's. So a time before that of the line tells nothing.
    """
    begun = printed_by(file, last)
    behind = filter(None, (_printed(file, line) for line in islice(lines_behind(file, last), _READ)))
    latest = max((*behind, last_printed(file) or 0.0))
    return None if begun is None or latest < begun else latest - begun


def printed_by(file: LogFile, last: int) -> float | None:
    """The time of line `last`, or of the nearest line above it that prints one."""
    above = [*_lines_above(file, last, _TIMED), next(lines_behind(file, last - 1), "")]
    return next(filter(None, (_printed(file, line) for line in reversed(above))), None)


def _printed(file: LogFile, line: str) -> float | None:
    return printed_time(line.encode(), read_at=file.modified)


# Ray prints the lines of its workers with their names. They work on for a while when their driver has ended.
_OF_A_WORKER = re.compile(r"\A\([\w.:<>]{1,80} pid=\d+(?:, ip=[\d.]+)?\)")


def went_on(file: LogFile, last: int, weight: Weight) -> bool:
    """Whether enough ordinary lines stand behind line `last` of the file. Reads at most a few hundred."""
    if weight == "nothing":
        return False
    own, *rest = islice(lines_behind(file, last - 1), 1 + _READ)
    if weight != "workers" and _OF_A_WORKER.match(own) is None:
        rest = [line for line in rest if _OF_A_WORKER.match(line) is None]
    behind = (drawn for line in rest for drawn in _drawings(line))
    lines = list(ordinary(islice(behind, _READ)))
    if weight == "bars":
        own_bars = _bars_above(file, last)
        drawn = {line for line in lines if (bar := _bar(line)) and bar.of_training and bar in own_bars}
        return len(drawn) >= ENOUGH_FORMS
    least = {"forms": ENOUGH_FORMS, "workers": _BEHIND_A_SHELL}.get(weight, ENOUGH)
    enough = len(_forms(file, last, lines) if weight == "forms" else lines) >= least
    return enough or (len(lines) >= _FEW and _got_over_it_before(file, last, lines))


def _got_over_it_before(file: LogFile, last: int, behind: Sequence[str]) -> bool:
    """Whether the program printed the words of line `last` again and again, and each time worked on.

    It must have caught the exception itself: no traceback stands above its words. Ranks print the same words
    too, so only lines of the same rank or worker count. `behind`: the ordinary lines behind the last time.
    """
    first = max(last - _READ_BEFORE, 0)
    lines = list(islice(lines_behind(file, first), last - first))
    if len(lines) < last - first or _OF_ONE_OF_MANY.search(_own_words(lines[-1])):
        return False
    said = who, _ = _words_of_one(lines[-1])
    times = [index for index, line in enumerate(lines) if _words_of_one(line) == said]
    between = [_work_of(who, lines[one + 1 : other]) for one, other in pairwise(times[-_AGAIN:])]
    printed = all(index and not _ends_something(lines[index - 1]) for index in times[-_AGAIN:])
    enough = len(between) == _AGAIN - 1 and printed and min(between) >= _FEW
    return enough and (work := _work_of(who, behind)) >= _FEW and 2 * work >= min(between)


def _ends_something(line: str) -> bool:
    """Whether the line is of a traceback or of a C++ exception: nobody caught what stands below it."""
    return _OF_A_TRACEBACK.match(_own_words(line)) is not None


def _work_of(who: list[str], lines: Iterable[str]) -> int:
    """How many ordinary lines such a rank or worker has printed there; if it has no name, how many at all."""
    return sum(1 for line in ordinary(lines) if not who or _words_of_one(line)[0] == who)


def _words_of_one(line: str) -> tuple[list[str], str]:
    """The rank or worker that a launcher names in front, and the words without their numbers."""
    own = _own_words(line)
    return _WHO.findall(line[: len(line) - len(own)]), _DIGITS.sub("0", own.strip())


def _drawings(line: str) -> list[str]:
    """What stood in the line, one after the other. A bar may begin with blanks, as a stack does."""
    drawn = _DRAWN_ANEW.split(line)
    return drawn if len(drawn) == 1 else [each.lstrip() for each in drawn]


def ordinary(lines: Iterable[str]) -> Iterator[str]:
    """The lines that may be work."""
    for line in without_lists(lines):
        idle = _OF_THE_END.search(line) or _LISTED.search(line) or is_of_a_monitor(line)
        if _LOSS.match(line) or not idle:
            yield line


class _Bar(NamedTuple):
    """A bar: its words without their numbers and without what a launcher prints in front of them."""

    label: str
    total: str

    @property
    def of_training(self) -> bool:
        return _OF_TRAINING.match(self.label) is not None


def _forms(file: LogFile, last: int, lines: Sequence[str]) -> set[str]:
    """The lines without their numbers. A loss is a form of its own each time: it is work.

    So is each drawing of a bar that a training draws, or that stood above line `last`. Another bar is one
    form: it may be an upload's, or that of the next program.
    """
    foreign = any(bar is not None and not bar.of_training for bar in map(_bar, lines))
    known = {bar.label for bar in _bars_above(file, last)} if foreign else set[str]()
    return {_form(line, known) for line in lines}


def _form(line: str, known: Collection[str]) -> str:
    bar = _bar(line)
    if bar is None:
        return line if _LOSS.match(line) else _DIGITS.sub("0", line.strip())
    return line if bar.of_training or bar.label in known else f"{bar.label}%|"


def _bar(line: str) -> _Bar | None:
    bar = _BAR.match(line)
    if bar is None:
        return None
    return _Bar(_DIGITS.sub("0", _own_words(bar["label"])).strip(), bar["total"] or "")


def _bars_above(file: LogFile, last: int) -> set[_Bar]:
    """The bars that the lines above line `last` draw."""
    drawn = (each for line in _lines_above(file, last, _READ_BEFORE) for each in _drawings(line))
    return {bar for bar in map(_bar, drawn) if bar is not None}


def leaves_the_script(file: LogFile, last: int) -> bool:
    """Whether line `last` is the exception of a traceback whose first frame is the script's own module."""
    below = ""
    for line in reversed(_lines_above(file, last, _LONGEST_TRACEBACK)):
        if _TRACEBACK.search(line):
            return _OF_THE_SCRIPT.match(below) is not None
        below = _own_words(line)
        if not (below[:1].isspace() or not below):
            return False
    return False


def printed_by_a_handler(file: LogFile, last: int) -> bool:
    """Whether line `last` is the exception of a traceback that begins within a function of the program.

    What nothing caught begins in the script's own module, or where a thread or a process begins. A search
    that reports a trial's exception in a line of its own had caught it, too. So had a program that prints
    only the words of a request's exception.
    """
    words = _own_words(next(lines_behind(file, last - 1), ""))
    if _OF_A_TRIAL.match(words) or _OF_A_REQUEST.match(words):
        return True
    below = ""
    for line in reversed(_lines_above(file, last, _LONGEST_TRACEBACK)):
        if _TRACEBACK.search(line):
            return _FRAME.match(below) is not None and _NOT_CAUGHT.search(below) is None
        below = _own_words(line)
        if not (below[:1].isspace() or not below):
            return False
    return False


def _lines_above(file: LogFile, last: int, most: int) -> list[str]:
    """The lines above line `last`, `most` of them at most."""
    first = max(last - 1 - most, 0)
    return list(islice(lines_behind(file, first), last - 1 - first))


def _own_words(line: str) -> str:
    """The line without what launchers print in front of it. Its own indentation stays."""
    whole = line.encode()
    return whole[front(whole) :].decode("utf-8", "replace")
