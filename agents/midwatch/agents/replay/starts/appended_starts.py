"""Appended starts: a file to which each start of a job has added its lines. The last start counts.

A new start is assumed only where all of these hold:

- The first lines of the file repeat: three in a row, but for times, long numbers and addresses. Or a line
  stands there that a launcher or a tracker prints once for each start.
- The steps begin again at or below the last one, if both starts print steps.
- None of them prints the same moment again: a buffer that two processes share is printed twice.
- The start before has ended, well or badly, or the repeated lines are those of a scheduler or a launcher.
  A start that printed no step must show both, or have ended and the next one begin a minute or more later.

A script that ended of an exception twice was started twice, whatever its first lines (`script_starts`).
What a start prints first stands behind the exception of an earlier one, too (`start_heads`).
Behind LSF's summary of one job the next job writes (`job_summaries`), and so do HTCondor's (`condor_jobs`).
A file that names another SLURM job than before, or shows a batch script's beginning behind its job's end, is
cut there (`other_jobs`).
Behind SLURM's word that a job is requeued, preempted or lost its node the next steps are another start's.
So is what stands behind the workers that torchrun's agent starts anew (`worker_group_starts`).

Of many files only the one that holds the root is searched. The others are cut as it is.

So neither a rewind of the steps within a start nor an epoch's or a validation's own headings begin one.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise, takewhile
from typing import NamedTuple

from midwatch.agents.replay.reading.log_files import LogFile, line_count, lines_behind, lines_beside, text_of
from midwatch.agents.replay.replayed import EarlierStart, Replayed
from midwatch.agents.replay.starts.attempt_folders import attempts_of
from midwatch.agents.replay.starts.condor_jobs import behind_ended_jobs
from midwatch.agents.replay.starts.failed_alike import held_where_alike
from midwatch.agents.replay.starts.first_rows import ROW, first_rows
from midwatch.agents.replay.starts.job_summaries import behind_job_summaries
from midwatch.agents.replay.starts.other_jobs import PIECES, behind_other_jobs
from midwatch.agents.replay.starts.script_starts import behind_ended_scripts
from midwatch.agents.replay.starts.start_heads import heads_behind_ends
from midwatch.agents.replay.starts.start_times import COMPARED, apart, begun_later, same_moment
from midwatch.agents.replay.starts.start_words import (
    MARKS,
    TAKEN,
    TAKEN_AWAY,
    marks_a_start,
    masked,
)
from midwatch.agents.replay.starts.worker_group_starts import PIECES as RESTART_PIECES
from midwatch.agents.replay.starts.worker_group_starts import behind_a_silent_restart, behind_restarts
from midwatch.agents.replay.went_on.written_on import held_where_written_on

MOST_FILES = 8
"""Files of a job that are each searched for appended starts. Of more files the one with the root is."""

_HEAD_LINES = 12  # lines among which the repeated ones stand
_MOST_STARTS = 64
_ALIKE = 4  # bytes with which two first lines of the same kind begin
_PIECE = 12  # bytes that must stand in a block before its lines are compared

_RESUMES = re.compile(
    r"(?i)\bresum(?:ed?|ing)\b|\b(?:loaded|loading|restored|restoring)\b.{0,40}\bcheckpoint"
)
_DIGITS = re.compile(rb"\d+")
_LITERAL = re.compile(rb"[^\d\s](?:[^\d\n]*[^\d\s])?")
_LAUNCHES = re.compile(
    rb"(?i)SLURM_|\b(?:srun|sbatch|torchrun|torch\.distributed\.(?:run|launch)|deepspeed|mpirun"
    rb"|accelerate launch|job[ _]?id|start(?:ing|ed)? (?:job|run|training)|launch(?:ing|ed)|prolog"
    rb"|nodelist|master_addr)\b"
    rb"|^Loading [\w.+-]+/\d[\w.+-]*\s*$"  # Environment Modules, which a batch script loads once a start
)
Watch = Callable[[Sequence[LogFile]], Replayed]
"""Replays these files as one job."""


class StartPlace(NamedTuple):
    """Where a start may begin in a file.

    `launched`: its first lines are a scheduler's or a launcher's. `marked`: one of `MARKS` stands there.
    `later`: its first lines print a time that is a minute behind that of the file's first lines.
    `behind_end`: SLURM's word that it took the job away stands right above. `other_job`: see `other_jobs`.
    `restarted`: see `worker_group_starts`.
    """

    offset: int
    number: int
    launched: bool
    marked: bool = False
    later: bool = False
    behind_end: bool = False
    other_job: bool = False
    restarted: bool = False


def replay_last(files: Sequence[LogFile], watch: Watch, *, anew: bool = False) -> Replayed:
    """The replay of the last start that the files hold, and how the earlier ones ended. Raises OSError.

    Folders of attempts hold one start each (`attempt_folders`). `anew`: these are the files of a later start.
    So behind each word of a restart another start follows, even if that file says no more.
    """
    *before, last = attempts_of(files)
    if not before:
        return _last_start(files, watch, anew=anew)
    replayed, earlier = replay_last(last, watch, anew=True), list[EarlierStart]()
    for own in before:
        past = replay_last(own, watch)
        file = next((each for each in own if each.path == past.verdict.root_file), own[0])
        earlier += (*past.earlier, EarlierStart(file.path, 1, line_count(file), past.verdict))
    note = "each folder of an attempt holds one start, and the last one counts"
    return replace(replayed, earlier=(*earlier, *replayed.earlier), assumed=(*replayed.assumed, note))


def _last_start(files: Sequence[LogFile], watch: Watch, *, anew: bool) -> Replayed:
    """The same of files that each hold all starts."""
    if len(files) > MOST_FILES:
        return _last_of_many(files, watch, anew=anew)
    cut, earlier = list[_Part](), list[EarlierStart]()
    for file in files:
        parts = _starts_of(file, _places_in(file), watch, anew=anew)
        cut.append(parts[-1])
        earlier += _earlier(parts, watch)
    known = cut[0].replayed if len(cut) == 1 else None
    last = [part.file for part in cut]
    return held_where_written_on(_noted(known or watch(last), earlier), last)


def _last_of_many(files: Sequence[LogFile], watch: Watch, *, anew: bool) -> Replayed:
    """The same of many files, which the ranks of one job write: their starts stand in the same order.

    A failure of an earlier start matters only where it is the root. So the file of the root is searched.
    """
    replayed, cut, earlier = watch(files), {file.path: file for file in files}, list[EarlierStart]()
    whole = dict(cut)
    for _ in range(MOST_FILES):
        root = whole.get(replayed.verdict.root_file)
        if root is None or cut[root.path] is not root:
            break
        places = _places_in(root)
        parts = _starts_of(root, places, watch, anew=anew)
        if len(parts) < 2:
            break
        last = next(index for index, place in enumerate(places) if place[:2] == parts[-1].file.start)
        cut = {
            path: _cut_alike(each, places, last) if each is whole[path] else each
            for path, each in cut.items()
        }
        earlier += _earlier(parts, watch)
        replayed = watch(list(cut.values()))
    return _noted(replayed, earlier)


def _cut_alike(file: LogFile, places: Sequence[StartPlace], last: int) -> LogFile:
    """The part of a file behind the same place, if starts may begin at as many places of the same kind."""
    own = _places_in(file)
    alike = [place.launched for place in own] == [place.launched for place in places]
    return replace(file, start=own[last][:2]) if alike else file


def _earlier(parts: Sequence[_Part], watch: Watch) -> Iterator[EarlierStart]:
    for part, following in pairwise(parts):
        verdict = (part.replayed or watch([part.file])).verdict
        start, end = part.file.start[1], following.file.start[1] - 1
        yield EarlierStart(part.file.path, start, end, verdict)


def _noted(replayed: Replayed, earlier: Sequence[EarlierStart]) -> Replayed:
    """The replay with the earlier starts, and with a note on them if there are any."""
    if not earlier:
        return replayed
    note = "the file holds several starts, and the last one counts"
    noted = replace(replayed, earlier=tuple(earlier), assumed=(*replayed.assumed, note))
    return held_where_alike(noted, earlier)


class _Part(NamedTuple):
    """What one start has written to a file. `replayed`: None if no replay of just this part is at hand."""

    file: LogFile
    replayed: Replayed | None = None


def _places_in(file: LogFile) -> list[StartPlace]:
    """Where starts may begin in a file: the last places, if there are too many that are sure.

    First lines that repeat too often are no start's.
    """
    places = list(islice(possible_starts(file), _MOST_STARTS + 1))
    if len(places) > _MOST_STARTS:
        places = list(islice(possible_starts(file, marks=False), _MOST_STARTS + 1))
    if len(places) > _MOST_STARTS:
        places = list(islice(possible_starts(file, firsts=False), _MOST_STARTS + 1))
    places = places if len(places) <= _MOST_STARTS else []
    below = [*(each.number if each.behind_end else 0 for each in places[1:]), 0]
    # Each node of a job prints the same words. The last of them parts the starts.
    places = [
        place
        for place, after in zip(places, below, strict=False)
        if not place.behind_end
        or (not 0 < after - place.number <= _HEAD_LINES and _has_lines_behind(file, place))
    ]
    places = _with_restarts(_with_other_jobs(_with_script_starts(places, file), file), file)
    return places[-_MOST_STARTS:]


def _has_lines_behind(file: LogFile, place: StartPlace) -> bool:
    """Whether more stands there than what a scheduler says when it has ended a start."""
    behind = islice(lines_behind(file, place.number - 1), _HEAD_LINES)
    return sum(1 for _ in behind) == _HEAD_LINES


def _starts_of(file: LogFile, places: Sequence[StartPlace], watch: Watch, *, anew: bool) -> list[_Part]:
    """The parts of a file that one start each has written."""
    if not places:
        return [_Part(file)]
    edges = [file.start, *((place.offset, place.number) for place in places)]
    stops = [*(place.offset for place in places), file.stop]
    parts = [replace(file, start=edge, stop=stop) for edge, stop in zip(edges, stops, strict=True)]
    known = watch([parts[0]])
    kept = [_Part(parts[0], known)]
    for part, place in zip(parts[1:], places, strict=True):
        following = watch([part])
        if (
            (anew and place.restarted)
            or _begins(known, following, place)
            or (place.behind_end and following.steps is not None and _comes_back(file, part))
            or (
                _only_late(known, following, place)
                and begun_later(file, kept[-1].file.start[1], part.start[1], _HEAD_LINES)
            )
        ):
            kept.append(_Part(part, following))
            known = following
        else:
            kept[-1] = _Part(replace(kept[-1].file, stop=part.stop))
            told = known if place.behind_end and following.steps is None else following
            known = replace(told, steps=_together(known.steps, following.steps))
    return kept


def _comes_back(file: LogFile, part: LogFile) -> bool:
    """Whether the part begins a minute behind SLURM's word above it, or tells that it resumes.

    Then its steps may go on where the others ended.
    """
    number = part.start[1]
    if begun_later(file, number - 1, number, _HEAD_LINES):
        return True
    return any(_RESUMES.search(line) for line in islice(lines_behind(file, number - 1), _HEAD_LINES))


def _with_script_starts(places: Sequence[StartPlace], file: LogFile) -> list[StartPlace]:
    """The places, and those behind ended scripts and jobs. A head that is a place already is no other one."""
    places = list(places)
    behind = {*behind_ended_scripts(file), *behind_job_summaries(file), *behind_ended_jobs(file)}
    for offset, number in heads_behind_ends(file):
        near = [index for index, each in enumerate(places) if 0 <= each.number - number <= _HEAD_LINES]
        places = [
            each._replace(launched=True) if index in near else each for index, each in enumerate(places)
        ]
        if not near:
            behind.add((offset, number))
    ended = {place: StartPlace(*place, launched=True) for place in behind}
    return sorted([*(each for each in places if each[:2] not in ended), *ended.values()])


def _with_other_jobs(places: Sequence[StartPlace], file: LogFile) -> list[StartPlace]:
    """The places, and those where another job begins. The first lines of a start may stand above its id."""
    known, other = list(places), list[StartPlace]()
    for offset, number, sure in behind_other_jobs(lines_beside(file, set(PIECES))):
        near = [each for each in known if abs(each.number - number) <= _HEAD_LINES]
        known = [each for each in known if each not in near]
        if offset > file.start[0]:
            first = min(near, default=StartPlace(offset, number, launched=sure))
            other.append(first._replace(launched=first.launched or sure, behind_end=False, other_job=True))
    return sorted([*known, *other])


def _with_restarts(places: Sequence[StartPlace], file: LogFile) -> list[StartPlace]:
    """The places, and those where workers are started anew. These repeat first lines a few lines further."""
    told = behind_restarts(lines_beside(file, set(RESTART_PIECES), common=math.inf))
    restarts = [StartPlace(*place, launched=True, restarted=True) for place in told]
    if not restarts and (silent := behind_a_silent_restart(text_of(file))) is not None:
        restarts = [StartPlace(*silent, launched=True)]
    restarts = [place for place in restarts if place.offset > file.start[0]]
    kept = [
        each
        for each in places
        if each.marked
        or each.behind_end
        or each.other_job
        or not any(abs(each.number - other.number) <= _HEAD_LINES for other in restarts)
    ]
    return sorted([*kept, *restarts])


def _begins(before: Replayed, after: Replayed, place: StartPlace) -> bool:
    """Whether what stands behind repeated first lines, at `place`, is another start."""
    if place.restarted:
        return after.steps is not None or after.verdict.state == "failed"
    if before.steps and after.steps and after.steps[0] > before.steps[1]:
        return False
    if place.behind_end:
        return after.steps is not None  # none in what a scheduler or an epilog says on
    ended = before.verdict.state == "failed" or before.verdict.mode == "success"
    if place.other_job:
        return ended or (place.launched and before.verdict.state == "healthy")
    if place.marked and before.steps is None and before.verdict.phase == "training":
        return True  # its lines count batches of an epoch, which are no steps to compare
    # Ranks of one start may print the same first lines, too. A start without a step must show more.
    return (ended or place.launched) if before.steps else (ended and (place.launched or place.later))


def _only_late(before: Replayed, after: Replayed, place: StartPlace) -> bool:
    """Whether what stands at `place` would be another start if its first lines were a minute later."""
    known = place.launched or place.later or place.behind_end or place.other_job
    return not known and _begins(before, after, place._replace(later=True))


def _together(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    return (one[0], other[1]) if one and other else one or other


def possible_starts(file: LogFile, *, firsts: bool = True, marks: bool = True) -> Iterator[StartPlace]:
    """Where the first lines of the file repeat (`firsts`) or `MARKS` stand (`marks`), from the top."""
    held: StartPlace | None = None
    for place in _places(file, firsts=firsts, marks=marks):
        near = held is not None and place.number - held.number <= _HEAD_LINES
        same = held is not None and place.number == held.number
        if held is not None and not same and not (near and (held.marked or place.marked)):
            yield held
        if not near or held is None or not held.marked:
            held = place
    if held is not None:
        yield held


def _places(file: LogFile, *, firsts: bool, marks: bool) -> Iterator[StartPlace]:
    """The places one by one. A mark may stand a few lines below the first lines of its start."""
    head = [(line, words) for line in file.head().split(b"\n") if (words := masked(line))][:_HEAD_LINES]
    rows = first_rows(head) if firsts else {}
    pieces = {piece for line, _ in head for piece in _LITERAL.findall(line) if len(piece) >= _PIECE}
    pieces = (pieces if rows else set()) | ({*MARKS, TAKEN} if marks else set())
    recent: deque[tuple[int, int, bytes, bytes]] = deque(maxlen=_HEAD_LINES + ROW)
    beyond, marked = 0, dict[bytes, int]()
    for offset, number, line in lines_beside(file, pieces) if pieces else ():
        words = masked(line)
        if not words:
            continue
        recent.append((offset, number, words, line[:COMPARED]))
        if marks and marks_a_start(line, number, marked) and offset > file.start[0]:
            yield StartPlace(offset, number, launched=True, marked=True)
        if marks and TAKEN_AWAY.search(line[:COMPARED]):
            yield StartPlace(offset + len(line) + 1, number + 1, launched=False, behind_end=True)
        index = rows.get(tuple(each[2] for each in list(recent)[-ROW:]), -1)
        if index < 0 or len(recent) < ROW:
            continue
        row_of_head = head[index : index + ROW]
        pairs = [
            (known, below[3]) for (known, _), below in zip(row_of_head, list(recent)[-ROW:], strict=True)
        ]
        if same_moment(pairs):
            continue
        above = [each[2] for each in recent][:-ROW]
        first = recent[len(above) - _of_the_head(above, [words for _, words in head[:index]])]
        if first[1] > beyond:
            beyond = first[1] + ROW
            if first[0] > file.start[0]:
                launched = any(_LAUNCHES.search(each) for each, _ in row_of_head)
                later = any(apart(*pair) for pair in pairs)
                yield StartPlace(first[0], first[1], launched, later=later)


def _of_the_head(above: Sequence[bytes], head: Sequence[bytes]) -> int:
    """How many of the lines above the repeated ones belong to the new start, too.

    They stand where the file's own first lines stand, and begin alike: what they name may be another one.
    """
    pairs = zip(reversed(above), reversed(head), strict=False)
    return sum(1 for _ in takewhile(lambda pair: _begins_alike(*pair), pairs))


def _begins_alike(one: bytes, other: bytes) -> bool:
    return _DIGITS.sub(b"0", one)[:_ALIKE] == _DIGITS.sub(b"0", other)[:_ALIKE]
