"""Told undone: a saved log's last lines say that its job did not do all that it was started for. Pure.

A script goes on behind a stage that failed, a loop behind its lost workers, a writer's thread ends and the
training does not. What they print at the end counts: 2 of 4 files, 0 snapshots written, exit code 1.

Of 1,797 logs of failures 213 end in such words. Of 660 logs of runs that did well none does, but they shaped
the words.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from midwatch.agents.replay.endings.closing_lines import ClosingFailure
from midwatch.agents.replay.endings.closing_words import VAGUE
from midwatch.agents.replay.endings.nothing_worked import nothing_worked
from midwatch.agents.replay.endings.stage_codes import badly_ended_part, failed_commands
from midwatch.agents.replay.reading.log_files import LogFile, last_lines, line_count, line_of, up_to
from midwatch.agents.replay.reading.printed_forms import form_of_print, own_part
from midwatch.streams.records import Hit

UNDONE = "the last lines say that not all of the work was done"

_LAST, _OF_CODES = 7, 2
"""Of so many last lines each may tell of it, and of the very last ones an exit code."""
_LONGEST = 400
_A_COUNT = 3
"""Lines of one form that count how far the work is. A summary has no such lines."""
_TRIES = 4
_SHELL = re.compile(
    r"\A\s*(?:real|user|sys)\s+\d+m|\A\s*\Z|\A[-=*~_ ]+\Z|\A\s*[d-][r-][w-][x-]|\Atotal \d|Warning\b|\[c10d"
    r"|\Awandb:"
)
_CODE = re.compile(
    r"(?i)(?:\b(?:exit(?:ed|ing)?(?: (?:with|code|status))*|rc|ret(?:urn(?:ed)?)?[ _]?code"
    r"|(?:ended|finished|died|left|done|killed),? (?:with )?(?:exit )?(?:code|status)"
    r"|exit[_-](?:code|status)"
    r"|(?:trial|run|job|worker|rank|stage|task|start) \S+ status)\W{0,3}|\.(?:py|sh) => ?)"
    r"(?:[1-9]\d?|1\d\d|25[45])\W*\Z"
)
# One of them is how far the work is: shard 3/8.
_OF_THE_WORK = (
    r"(?:files|shards|parts|vectors|embeddings|snapshots|art[ei]facts|checkpoints|stages|clients|rounds|folds"
    r"|outputs|exports|formats|targets|models|(?:pipeline )?steps (?:ok|done|succeeded|passed))"
)
_GOES_ON = re.compile(r"\b(?!missing\b)[A-Za-z]{3,}ing\b")
"""Loading the shards, writing the files: it is not over."""
_COUNTS = r"(?<![\w./-])(\d+) ?(?:of|/) ?(\d+)(?![\w./%-])"
_OF_ALL = re.compile(rf"(?i)\b{_OF_THE_WORK}\b[^\d]{{0,24}}?{_COUNTS}")
_ALL_OF = re.compile(rf"(?i){_COUNTS} (?:\w+ )?{_OF_THE_WORK}\b")
_TRAINED = re.compile(rf"(?i)\btrained\b[ :=]+{_COUNTS}")
_DONE = (
    r"(?:written|saved|exported|stored|completed?|succeeded|successful|built|measured|converted|embedded"
    r"|uploaded|published)"
)
_OF_ITS_NAME = r"(?<!stage )(?<!phase )(?<!epoch )(?<!round )(?<!fold )(?<!step )"
_NONE = re.compile(
    rf"(?i)\b{_DONE}\b[ :=]+0\b(?![.,:]\d|%)|(?<![\w./-]){_OF_ITS_NAME}0 (?:\w+ )?{_DONE}\b"
    r"|\bnothing (?:was |has been )?(?:written|exported|saved|trained|produced)\b"
    r"|\bincomplete (?:run|training|export|job)\b"
    r"|\.(?:csv|tsv|parquet|jsonl?|arrow|npy)\b\W{1,3}0 (?:lines|rows|records|entries)\b"
    r"|\b(?:done|finished|completed?|ended|over)\b.{0,80}"
    r"\b(?:last|final|latest|best) (?:checkpoint|snapshot|weights)\b ?[:=] ?(?:none|nothing|n/a)\W*\Z"
)
_OF_MANY = r"(?:workers?|stages?|jobs?|ranks?|shards?)"
_FAILED = re.compile(
    rf"(?i)\b(?:non-?zero exits?|failed {_OF_MANY}|{_OF_MANY} (?:with )?(?:non-?zero exit|failed|lost))"
    rf"\b[ :=]+[1-9]"
    rf"|(?<![\w./-])[1-9]\d* (?:of \d+ )?{_OF_MANY} (?:failed|exited non-?zero|crashed|died|lost)\b"
    r"|(?:\A|[\"\s])[\w-]+: (?-i:FAILED)\"?\}?\s*\Z"
)
_RESULT = r"(?:final|last|best) (?:checkpoint|model|weights|snapshot|results?)"
_UNSAVED = re.compile(
    rf"(?i)\b{_RESULT} (?:save|saving|write|writing|export|upload) failed\b"
    rf"|\b(?:failed to|could ?n[o']t|cannot|unable to) (?:save|write|store|export) (?:the )?{_RESULT}\b"
)
_HALTED = re.compile(
    r"\A\W*(?:ERROR|FATAL|CRITICAL)\b.{1,160}\b(?i:halting|aborting|terminating)\b[.!]*\s*\Z"
)
_BAR = re.compile(rb"\d%\|")
_OF_A_DISK = re.compile(
    r"(?i)\bno space left\b|\bquota exceeded\b|\bread-only file system\b|\binput/output error\b"
)
_ENOUGH = re.compile(r"(?i)\b(?:required|optional|skipped|enough|minimum|quorum)\b")
"""What was left undone was not needed."""


def first_undone(files: Sequence[LogFile], *, succeeded: bool) -> ClosingFailure | None:
    """What the first such file tells of it; None if none does. Arguments as of `told_undone`."""
    found = ((file, told_undone(file, succeeded=succeeded)) for file in files)
    return next((_undone(file, number) for file, number in found if number), None)


def _undone(file: LogFile, number: int) -> ClosingFailure:
    kind = "storage" if _OF_A_DISK.search(line_of(file, number)) else VAGUE
    return ClosingFailure(file.path, number, kind, UNDONE)


def told_undone(file: LogFile, *, succeeded: bool = False) -> int:
    """The number of the line in which the last lines say so, or that of a part's code; 0 if none does.

    Where none of the items worked, it is the line of the error that all of them met.
    `succeeded`: the job told of its success. Then an exit code may be its closing's. Raises OSError.
    """
    lines = last_lines(file)
    shown = [(number, line.decode("utf-8", "replace")) for number, line in lines]
    often = Counter(form_of_print(line) for _, line in shown)
    counts = {number for number, line in shown if often[form_of_print(line)] >= _A_COUNT}
    shown = [(number, own_part(line)) for number, line in shown if not _SHELL.search(own_part(line))]
    last = [(number, words) for number, words in shown[-_LAST:] if len(words) <= _LONGEST]
    drawn = {number for number, line in lines if _BAR.search(line)}
    works = max((number for number, line in lines if number in counts | drawn and line.strip()), default=0)
    told = next((number for number, words in last if number not in counts and _says_undone(words)), 0)
    told = told or next((number for number, words in last if number > works and _HALTED.search(words)), 0)
    if told:
        met = nothing_worked(lines, {})
        return told if met is None else met[0]
    if succeeded:
        return 0
    code = next((number for number, words in last[-_OF_CODES:] if _CODE.search(words)), 0)
    return code or badly_ended_part(file) or failed_commands(file)


def cuts_behind_failures(files: Sequence[LogFile], hits: Sequence[Hit]) -> Iterator[LogFile]:
    """The one file of the job as if it had ended behind its last failure, and behind the ones before it.

    Nothing where it ends with its last failure, or where the job has several files. Raises OSError.
    """
    failed = {hit.line.number for hit in hits if hit.role in ("cause", "consequence") and not hit.aside}
    if len(files) == 1:
        lines = line_count(files[0])
        yield from (up_to(files[0], each) for each in sorted(failed, reverse=True)[:_TRIES] if each < lines)


def _says_undone(words: str) -> bool:
    if _ENOUGH.search(words):
        return False
    each = (_OF_ALL, _ALL_OF, _TRAINED)
    counts = [] if _GOES_ON.search(words) else [pair for form in each for pair in form.findall(words)]
    in_part = any(int(done) < int(of) for done, of in counts)
    return in_part or any(form.search(words) for form in (_NONE, _FAILED, _UNSAVED))
