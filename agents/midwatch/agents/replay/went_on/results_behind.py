"""Results behind: a program printed on behind its last exception, and its results come at the end. Pure.

A judge of generated code, a sweep or a loop over files gets over many exceptions and never says so. The
order of its own lines shows it. Lines like those above stand behind the traceback, too. The last ones tell of
results, in a form that is new. A process that an exception ended prints neither. A shell or a launcher that
goes on behind it prints nothing that stood above in the same form. Where one line of Python failed by which a
script only looks for something, the results are those of the next program.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from itertools import islice

from midwatch.agents.replay.reading.log_files import LogFile, lines_behind
from midwatch.agents.replay.reading.printed_forms import (
    CLOCK,
    form_of_print,
    numbers_in,
    own_part,
    without_clock,
)
from midwatch.agents.replay.went_on.aftermath import printed_by_a_handler
from midwatch.agents.replay.went_on.counted_on import is_cut
from midwatch.agents.replay.went_on.good_ends import ALL_OF, FILE, WRITTEN
from midwatch.agents.replay.went_on.monitors import is_of_a_monitor

_READ = 3000
_TRACEBACK = 150  # lines
_LAST, _CLEAN, _TOLD = 6, 3, 4
"""Of so many last lines that a program shows, the last few speak of no failure, and one tells of results."""
_PAIR = 2
_LETTERS = re.compile(r"[\W\d_]+")
_LONGEST = 400
_CLOCK = re.compile(CLOCK)
_MARGIN = " \t|│┃"
_OF_A_BOX = "│┃╰┗"
"""What the lines of a traceback begin with that rich draws into a box."""
_KIND = 24
_BEGINS = "Traceback (most recent call last)"
_FATAL = re.compile(r"(?i)\b(?:fatal|unhandled|uncaught) (?:error|exception)\b")
"""What a program calls an exception that its outermost handler reports: it ends behind that."""
_ONE_LINER = re.compile(r"\A\s*File \"<string>\", line \d+, in <module>")
_SPAWNS = re.compile(r"\bspawn_main\b|\bmultiprocessing\b")
"""`python -c` of a script, which goes on behind it; Python itself begins a process of a pool so."""
_NAMES = re.compile(r"(?:\w+\.)*\b[A-Z]\w*(?:Error|Exception)\b")
_SHELL = re.compile(
    r"\A\s*(?:real|user|sys)\s+\d+m|\A\+ |\A\s*\Z|Warning\b"
    r"|\A\[?[WI]\d{4} [\d:.]+ +\d+ (?:torch|site-packages)"
    r"|wandb:|\bCOMET\b|\[c10d|\A\s*warnings\.warn|\A\s{2,}\w+ = |\A[-=*~_ ]+\Z|\d%\||\dit/s|s/it\b"
    r"|\Atotal \d+[KMGT]?\s*\Z"  # of ls
)
"""Lines that a shell, a library or a bar prints."""
_OF_A_STACK = re.compile(
    r"\A\s*(?:File |Traceback|\^|~|During handling|The above|raise |return |warn)|Error\b|Exception\b|\A\s*\Z"
    r"|\A\+ |Warning\b|elastic|\[c10d|\d%\||CUDA|\A\|[= -]"
)
_MEASURE = re.compile(
    r"(?i)(?:\b|_)(?:\w*loss|nll|mse|rmse|mae|ppl|perplexity|\w*rewards?|ep_?rew\w*|returns?|\w*acc(?:uracy)?|f1"
    r"|auc|bleu|rouge\w*|pass@\d+|scored?s?|elo|precision|recall|val|psnr|fid|r2|wer|cer|\w?iou|map|agreement"
    r"|ndcg\w*|mrr|hits?@\d+|radius|objective|mean|kept)(?:\b|_|@)"
)
_OF_RESULTS = re.compile(
    r"(?i)\b(?:best|final|overall|totals?|summary|report|results?|ranking|average|kept|accepted|all"
    r"|measured|executed|processed)\b"
)
_OF_TIME = re.compile(r"(?i)\b(?:time|took|elapsed|duration|runtime)\b")
_TESTED = re.compile(
    r"OK(?: \([a-z]+(?: [a-z]+)*=\d+(?:, [a-z]+(?: [a-z]+)*=\d+)*\))?"
)  # unittest's last word
_NO_ERRORS = re.compile(r"(?i)\b(?:no|0)(?: \w+)? (?:errors?|failures?)\b")
_OF_A_FAILURE = re.compile(
    r"(?i)\b(?:errors?|exception|traceback|abort\w*|crash\w*|fatal|killed|terminated|gave up|giving up"
    r"|exit(?:ed)? (?:code|status)? ?[1-9]|(?:rc|status|code)[= ][1-9]\d*|failed (?:with|to|because)|stopp\w+"
    r"|(?:stages?|ranks?|workers?|nodes?|job|pipeline|script|training) failed|interrupt\w*|emergency|partial"
    r"|incomplete|unfinished|absent|missing|lost|not (?:saved|written|stored|found)|nan|inf)\b"
    r"|srun:|slurmstepd|torchrun|elastic|=> ?[1-9]\d*\s*\Z|exit_code=[1-9]|\A\s*(?-i:at|frame|in) |\[bt\]"
    r"|0x[0-9a-f]{6}"
)
_PART = re.compile(r"(?i)\b(?:rounds?|stages?|steps?|epochs?|parts?|folds?)\b.*?\b(\d+) ?(?:of|/) ?(\d+)\b")
_PARTS = re.compile(r"(?i)\b(\d+) ?(?:of|/) ?(\d+) (?:rounds|stages|steps|epochs|parts|folds)\b")
_ONLY_A_FILE = re.compile(
    rf"\W*(?:[\d,]+ )?(?:{FILE}|[\w./-]+\.(?!py|sh|log|out|err)[a-z]{{2,6}})(?:\s+\d+)?\W*"
)
_ONLY_A_NUMBER = re.compile(r"\s*[-+]?\d+\.\d+%?\s*")
_COLUMNS = re.compile(r"\s{2,}|\s*\|\s*|\t")


def has_results_behind(file: LogFile, last: int) -> bool:
    """Whether behind the exception of line `last` the program printed on, up to its results.

    Raises OSError.
    """
    first = max(last - _READ, 0)
    above = list(islice(lines_behind(file, first), last - first))
    while above and above[-1][:1].isspace() and not _NAMES.match(above[-1].lstrip(_MARGIN)):
        above.pop()  # an exception's message may have more lines
    behind = list(islice(lines_behind(file, last), _READ + 1))
    if len(behind) > _READ:
        return False
    begin = _begin_of_traceback(above)
    known = _forms(above[:begin])
    if not _tells_of_results(behind, known) or is_cut(file, last):
        return False
    if begin == len(above):
        return _prints_such_records(above)
    failed = any(_is_a_failure(line) or _is_in_part(line) for line in _shown(behind))
    if printed_by_a_handler(file, last):
        return not (failed or (begin > 0 and _FATAL.search(above[begin - 1])))
    if _is_a_probe(above[begin:]) and not failed:
        return True
    return any(known[form] > 1 for form in _forms(behind)) or _got_over_one_before(above[:begin])


def _is_a_probe(traceback: Sequence[str]) -> bool:
    """Whether only one line of Python that the script ran by itself failed."""
    one_line = len(traceback) > 1 and _ONE_LINER.match(own_part(traceback[1])) is not None
    return one_line and not any(map(_SPAWNS.search, traceback))


def _begin_of_traceback(above: Sequence[str]) -> int:
    """The place of the header that belongs to the last line; the number of the lines without one."""
    for place in range(len(above) - 1, max(len(above) - _TRACEBACK, 0) - 1, -1):
        at = above[place].find(_BEGINS)
        if at >= 0:
            within = (_behind_prefix(line, above[place][:at]) for line in above[place + 1 : -1])
            whole = all(not line.strip() or line[0].isspace() or line[0] in _OF_A_BOX for line in within)
            return place if whole and _speaker(above[place]) == _speaker(above[-1]) else len(above)
    return len(above)


def _speaker(line: str) -> str:
    """What stands in front of the line's own words, without the clock: a rank, a worker."""
    return _CLOCK.sub("", line.removesuffix(own_part(line)))


def _behind_prefix(line: str, prefix: str) -> str:
    """The line without what a launcher, a logger or a box has in front of it and of the header."""
    own = line[: len(prefix)]
    if prefix.strip() and form_of_print(own) == form_of_print(prefix):
        return line[len(prefix) :]
    return own_part(line)


def _prints_such_records(above: Sequence[str]) -> bool:
    """Whether the last line names an exception in a record as others above it."""
    if not above:
        return False
    record = form_of_print(above[-1])[:_KIND]
    if len(record) < _KIND or _NAMES.search(above[-1]) is None or _NAMES.match(own_part(above[-1]).strip()):
        return False
    return sum(1 for line in above[:-1] if form_of_print(line)[:_KIND] == record) > 1


def _got_over_one_before(above: Sequence[str]) -> bool:
    """Whether behind an earlier traceback lines come as they stood above it, or again and again."""
    places = [place for place, line in enumerate(above) if _BEGINS in line]
    if not places:
        return False
    known, between = _forms(above[: places[0]]), _forms(above[places[0] : places[-1]])
    return any(form in known for form in _forms(above[places[0] :])) or any(
        count > 1 for count in between.values()
    )


def _tells_of_results(behind: Sequence[str], known: Collection[str]) -> bool:
    shown = _shown(behind)
    rows = _rows_at_the_end([line for line in shown if form_of_print(line) not in known])
    if rows and rows[-1] == shown[-1]:
        return True
    shown = shown[-_LAST:]
    if any(map(_is_in_part, shown)) or any(map(_is_a_failure, shown[-_CLEAN:])):
        return False
    if sum(1 for line in shown if _is_only_a_file(line)) > _CLEAN:
        return False  # what is listed or copied
    fresh = [line for line in shown[-_TOLD:] if form_of_print(line) not in known]
    return any(map(_is_a_result, fresh)) or bool(fresh and _ONLY_A_NUMBER.fullmatch(own_part(fresh[-1])))


def _is_a_result(line: str) -> bool:
    words, numbers = own_part(line), numbers_in(without_clock(line))
    if _MEASURE.search(words) and any("." in each for each in numbers):
        return True
    if _OF_RESULTS.search(words) and numbers and _OF_TIME.search(words) is None:
        return True
    told = any(each.search(words) for each in (WRITTEN, ALL_OF)) or bool(_TESTED.fullmatch(words.strip()))
    return told or _is_only_a_file(line)


def _is_only_a_file(line: str) -> bool:
    return _ONLY_A_FILE.fullmatch(own_part(line).strip()) is not None


def _rows_at_the_end(lines: Sequence[str]) -> list[str]:
    """The rows of the table in which the lines end, if a third of them measures; [] without one.

    A row may tell that what it stands for failed.
    """
    rows = list[str]()
    for line in reversed(lines):
        columns = len(_COLUMNS.split(own_part(line).strip()))
        if columns < _PAIR or (rows and abs(columns - len(_COLUMNS.split(own_part(rows[0]).strip()))) > 1):
            break
        rows.insert(0, line)
    measured = sum(1 for line in rows if any("." in each for each in numbers_in(without_clock(line))))
    return rows if len(rows) >= _TOLD and 3 * measured >= len(rows) and measured >= _CLEAN else []


def _is_a_failure(line: str) -> bool:
    return _OF_A_FAILURE.search(_NO_ERRORS.sub("", own_part(line))) is not None


def _is_in_part(line: str) -> bool:
    """Whether the line says that not all of it was done: 5 of 12 rounds."""
    words = own_part(line)
    return any(int(one) < int(other) for one, other in [*_PART.findall(words), *_PARTS.findall(words)])


def _shown(lines: Iterable[str]) -> list[str]:
    return [line for line in lines if _SHELL.search(line) is None and not is_of_a_monitor(line)]


def _forms(lines: Iterable[str]) -> Counter[str]:
    """How often each form of a program's own lines occurs."""
    own = (line for line in lines if len(line) <= _LONGEST and _OF_A_STACK.search(own_part(line)) is None)
    return Counter(form for form in map(form_of_print, own) if len(_LETTERS.sub("", form)) >= _PAIR)
