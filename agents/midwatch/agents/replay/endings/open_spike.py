"""The open spike: a log whose last losses stand far above the others, or no longer appear. Pure.

A live watch reports a spike as a finding, because the run may recover. A saved log has no later lines, so a
spike that is open at its end is the verdict.
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, islice, pairwise, takewhile
from statistics import median
from typing import NamedTuple

from midwatch.agents.detect.incident.resumption import EPOCH_LINES
from midwatch.agents.replay.endings.adversarial_losses import is_of_adversaries
from midwatch.agents.replay.endings.filtered_losses import filtered_loss
from midwatch.agents.replay.endings.other_ends import count_to_other_ends
from midwatch.agents.replay.endings.policy_losses import is_of_a_policy
from midwatch.agents.replay.reading.log_files import LogFile, last_lines, line_of, lines_behind
from midwatch.streams.records import Hits, Progress

_KEPT = 64
_FACTOR = 1.35
"""So far above the usual loss is the lowest one of a spike."""
_STEADY, _SINGLE = 4.0, 12.0
"""A spike of several losses, or of a single one, is so many times the usual change between two losses."""
_TINY = 1e-3
_LEAST = 2
_LAG = 3
"""Losses by which a rank that prints the same ones may lag behind the first."""
_ANEW = 4
"""A loop began anew if its step or epoch is less than this part of the highest one before."""
_APART = 16
"""So many times the usual distance of two losses stand two loops apart whose lines name no place."""
_JUMP = 2.0
"""A spike begins with a jump of so many times the usual change. What climbs evenly is another measure."""
_SMALL = 0.2
"""A spike below this part of the first loss shows no divergence."""
_BROKEN = 3
"""So many losses at the end that are no numbers, or nothing, show that the weights are broken."""
_LEARNT = 0.1
"""What falls from so high to exactly nothing, from one loss to the next, was not learnt."""
_LASTING = 16
"""So many high losses show a spike that no end of the training ends."""
_READ = 60
"""Lines behind the last loss in which a program may say that its training is complete."""
_EPISODE_LINES = "episode_counted"
"""What an agent learns from changes as it learns. So its loss may rise while all goes well."""
_EVALUATED = re.compile(
    r"(?i)\b(?:val(?:id(?:ation)?)?|dev(?:elopment)?|test(?:ing)?|eval(?:uation)?)[ _/-]?loss\W{0,3}"
    r"(\d[\d.]*(?:e[+-]?\d+)?)"
)
"""A loss on data that are not trained on. It climbs where a model fits its own data too well."""
_NO_NUMBER = r"loss\W{0,12}(?:nan|inf)\b"
_BROKEN_LOSS = re.compile(rf"(?i){_NO_NUMBER}")
_EVALUATED_BROKEN = re.compile(
    rf"(?i)\b(?:val(?:id(?:ation)?)?|dev(?:elopment)?|test(?:ing)?|eval(?:uation)?)[ _/-]?{_NO_NUMBER}"
)
_OF_AN_EVALUATION = re.compile(
    r"(?i)\A[\W_]*(?:evaluat(?:ion|ing)|eval|valid(?:ation|ating)?|dev|test(?:ing)?)\W*\Z"
)
"""The heading of such a loss in a line of its own."""
_NAN_ITERATIONS = re.compile(r"\bnumber of nan iterations: +[1-9]")
"""What Megatron prints in place of a loss that is not a number."""
_NEXT_STAGE = re.compile(
    r"(?i)\b(?:(?:switch|mov|chang|transition|advanc)(?:e[ds]?|ing|s)?(?: over)? to|enter(?:ing|ed|s)?"
    r"|start(?:ing|ed|s)?|begin(?:ning|s)?) (?:\w+ )?(?:stage|phase|curriculum|task)\b"
    r"|\A[\W_]*(?:stage|phase|curriculum|task) \d"
)
"""A program says that other data or another goal follow. The loss starts anew at its own height."""
_FIRST_EPOCH = re.compile(r"(?i)\A\W*epoch\W{0,3}[01] ?/ ?\d+\W*\Z")
"""The heading of a first epoch. Behind another training's last one it begins the next training."""
_BEST_SINCE = re.compile(
    r"(?i)\b(?:improved|decreased) (?:\(|from )[\d.]+(?:e-?\d+)? ?(?:-+>|to) ?\d[\d.]*(?:e-?\d+)?\b"
)
"""A program says that its evaluation is better than ever before. No first number, or `inf`, is none."""
_COMPLETE = re.compile(
    r"(?i)\btrain(?:ing)? (?:is |was |has |run )?(?:been )?(?:complete|finished|done|over|ended)"
    r"|\b(?:finished|completed|done) (?:the )?(?:training|fit)"
    r"|\ball (?:runs|experiments|epochs|stages) (?:are |were )?(?:complete|finished|done)\b"
)


class LossLine(NamedTuple):
    """One progress line of a log. `loss` is None if the line has none, though the rule could read one.

    `place`: its step, or its epoch if it names no step. It is -1 if the line names neither. `counted`: how
    far a loop is that prints no step.
    """

    path: str
    number: int
    step: int
    loss: float | None
    place: float = -1.0
    counted: str = ""


class Spike(NamedTuple):
    """A series that ends far above its usual loss: its first high line, its last line, its usual distance.

    `before`: the last line below it. `falls`: its losses only fall, once they are high. `lower`: its last one
    is not above its first. `sure`: False if the loss vanished at its usual height, and only the text of its
    lines can show that it is no number. `lasts`: many high losses stand there, so not even the end of the
    training ends it.
    """

    error_type: str
    first: LossLine
    last: int
    distance: float
    before: int
    falls: bool = False
    lower: bool = False
    sure: bool = True
    lasts: bool = False


@dataclass(slots=True)
class Losses:
    """The last losses of each rule and file, and the first one: 0 only if the first two are 0."""

    series: dict[tuple[str, str], deque[LossLine]] = field(default_factory=dict)
    first: dict[tuple[str, str], float] = field(default_factory=dict)

    def take(self, record: Hits) -> None:
        """Note the losses of one record. Records of a file come in its order."""
        for column in record.progress:
            if column.losses and column.rule != _EPISODE_LINES:
                name = (column.path, column.rule)
                known = self.series.setdefault(name, deque(maxlen=_KEPT))
                known.extend(_lines(column))
                told = [loss for loss in map(_number, column.losses) if loss is not None]
                if any(told):
                    self.first.setdefault(name, next(filter(None, told)) if any(told[:2]) else 0.0)

    def open_spikes(self) -> list[Spike]:
        """The series that end in a spike, the one with the lowest step first."""
        found = [
            spike
            for name, lines in self.series.items()
            if (spike := _at_end(_last_loop(tuple(_each_once(lines))))) is not None
            and not _is_small(spike.first.loss, self.first.get(name))
        ]
        return sorted(found, key=lambda each: each.first.step)

    def broken_at_end(self, *, done: bool = False) -> LossLine | None:
        """The first of the last losses of a series that all are no numbers, where whole ones stand above.

        Losses that fell to nothing at once are broken, too, unless the training told that it is `done`.
        """
        for lines in self.series.values():
            known = [line for line in _last_loop(tuple(_each_once(lines))) if line.loss is not None]
            whole = max((at for at, line in enumerate(known) if _is_whole(line)), default=-1)
            if whole >= 0 and len(known) - whole > _BROKEN:
                return known[whole + 1]
            if not done and (fell := _fell_to_nothing(known)) is not None:
                return fell
        return None


def _is_whole(line: LossLine) -> bool:
    return line.loss is not None and math.isfinite(line.loss)


def _fell_to_nothing(known: Sequence[LossLine]) -> LossLine | None:
    """The first of the last losses if all of these are 0, none above is, and the one above was not small."""
    above = [line.loss or 0.0 for line in takewhile(lambda line: line.loss != 0, known)]
    nothing = known[len(above) :]
    whole = len(nothing) >= _BROKEN and all(line.loss == 0 for line in nothing)
    return nothing[0] if whole and above and above[-1] >= _LEARNT else None


def _is_small(spike: float | None, first: float | None) -> bool:
    """Whether the spike is small beside the first loss, or that was 0, as a policy's is: no divergence."""
    return spike is not None and first is not None and (first == 0 or 0 < spike < _SMALL * first)


def is_over(file: LogFile, spike: Spike) -> bool:
    """Whether the log shows that nothing is open.

    The loop of the series had ended, the next stage began, or an evaluation has been the best one since.
    Raises OSError if the file cannot be read.
    """
    if (not spike.sure and not _is_said(file, spike)) or _is_evaluated(file, spike.first):
        return True
    first = spike.first
    told = (file, first.number, first.loss)
    if (
        count_to_other_ends(file, spike.before, first.number)
        or is_of_a_policy(*told)
        or is_of_adversaries(*told)
    ):
        return True
    between = list(_between(file, spike.before, spike.first.number)) if spike.before else []
    if spike.lower and any(map(_FIRST_EPOCH.match, between)):
        return True
    if spike.falls and any(map(_NEXT_STAGE.search, between)):
        return True
    since = islice(lines_behind(file, spike.first.number), spike.last - spike.first.number)
    if any(map(_BEST_SINCE.search, since)):
        return True
    far = max(_APART * spike.distance, _READ)
    behind = list(islice(lines_behind(file, spike.last), int(far) + 1))
    return len(behind) > far or (not spike.lasts and any(_COMPLETE.search(line) for line in behind[:_READ]))


def broken_at_end(losses: Losses, files: Mapping[str, LogFile], *, done: bool) -> LossLine | None:
    """Where losses that are no numbers begin, if all that follow are such. `files`: by path. Raises OSError.

    The losses of an evaluation may be none while the training does well. `done`: see `Losses.broken_at_end`.
    """
    for (path, _), lines in losses.series.items():
        filtered = filtered_loss(last_lines(files[path])) if lines[-1].loss == 0 else None
        if filtered is not None:
            return LossLine(path, filtered, -1, 0.0)
    line = losses.broken_at_end(done=done)
    if line is None or (line.loss == 0 and _is_evaluated(files[line.path], line)):
        return None
    text = line_of(files[line.path], line.number)
    others = _EVALUATED_BROKEN.sub("", text)
    return line if others == text or _BROKEN_LOSS.search(others) else None


def _is_evaluated(file: LogFile, spike: LossLine) -> bool:
    """Whether the line, or a heading right above it, says that the loss is an evaluation's."""
    above = next(_between(file, spike.number - 2, spike.number), "")
    if _OF_AN_EVALUATION.match(above):
        return True
    return any(float(loss) == spike.loss for loss in _EVALUATED.findall(line_of(file, spike.number)))


def _is_said(file: LogFile, spike: Spike) -> bool:
    """Whether the first and the last line without a loss say that the loss is not a number."""
    return spike.first.number < spike.last and all(
        _NAN_ITERATIONS.search(line_of(file, number)) for number in (spike.first.number, spike.last)
    )


def _between(file: LogFile, above: int, below: int) -> Iterator[str]:
    """The lines between two numbers, the last of them."""
    first = max(above, below - 1 - _READ)
    return islice(lines_behind(file, first), below - 1 - first)


def _lines(column: Progress) -> Iterator[LossLine]:
    counts = column.counts or ("",) * len(column.numbers)
    for number, step, loss, count in zip(column.numbers, column.steps, column.losses, counts, strict=False):
        place = float(step) if step >= 0 else _number(_epoch(column.rule, count))
        yield LossLine(column.path, number, step, _number(loss), -1.0 if place is None else place, count)


def _each_once(lines: Iterable[LossLine]) -> Iterator[LossLine]:
    """The lines without those that say once more what one of the last few has said.

    A bar draws its last line again when it is closed. Each rank may print the loss that all of them share.
    """
    recent = deque[tuple[object, ...]](maxlen=_LAG)
    for line in lines:
        named = line.counted or line.step >= 0
        if not named or line[2:] not in recent:
            yield line
            recent.append(line[2:])


def _epoch(rule: str, count: str) -> str:
    """The epoch of a count. The bare count of a batch starts again each epoch, so it tells no place."""
    epoch, colon, _ = count.partition(":")
    return epoch if colon or rule in EPOCH_LINES else ""


def _number(text: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError:
        return None


def _last_loop(lines: tuple[LossLine, ...]) -> tuple[LossLine, ...]:
    """The lines since the loop began anew: the next fold, model or run. Its first losses are high again.

    A run that resumes goes back a little. So only a fall counts that goes to a small part of the way, or to
    where the first of these loops began.
    """
    if len(lines) > _LEAST and all(line.place < 0 for line in lines):
        return lines[_after_other_text(lines) :]
    best, furthest, start = -1.0, (-1.0, -1), 0
    for index, line in enumerate(lines):
        back = _reached(line) <= _reached(lines[start]) < furthest
        if line.place >= 0 and (line.place < best / _ANEW or back):
            best, furthest, start = -1.0, (-1.0, -1), index
        best, furthest = max(best, line.place), max(furthest, _reached(line))
    return lines[start:]


def _reached(line: LossLine) -> tuple[float, int]:
    """The place of a line, and the batch of its epoch, or -1 where the line counts none."""
    batch = line.counted.partition(":")[2]
    return line.place, int(batch) if batch.isdecimal() else -1


def _after_other_text(lines: tuple[LossLine, ...]) -> int:
    """Where the losses begin that stand far behind the others and have not risen since.

    Keras counts only the batches of an epoch. The text between two models, such as their layers, parts them.
    """
    distances = [after.number - before.number for before, after in pairwise(lines)]
    far = _APART * median(distances)
    start = max((index for index, each in enumerate(distances, 1) if each > far), default=0)
    first, last = lines[start].loss, lines[-1].loss
    return start if first is not None and last is not None and last <= first else 0


def _at_end(lines: tuple[LossLine, ...]) -> Spike | None:
    """The spike at the end of one series."""
    known = [line for line in lines if line.loss is not None and math.isfinite(line.loss)]
    vanished = _vanished(lines)
    high = vanished is not None and _is_high(known)
    first = vanished if high else _raised(known) or vanished
    if first is None or not known:
        return None
    distance = median(after.number - before.number for before, after in pairwise(lines))
    low = max((line for line in known if line.number < first.number), key=_place_in_file, default=None)
    if low is not None and 0 <= first.step == low.step and first is lines[-1]:
        return None  # one step has one training loss, so the second one is an evaluation's
    before = 0 if low is None else low.number
    losses = [line.loss for line in known if line.loss is not None and line.number >= first.number]
    falls = all(after <= earlier for earlier, after in pairwise(losses)) and len(losses) >= _LEAST
    lower = bool(losses) and losses[-1] <= losses[0]
    broken = first is vanished
    kind = "numerical_instability" if broken else "loss_spike"
    lasts = not broken and len(losses) >= _LASTING
    return Spike(
        kind,
        first,
        lines[-1].number,
        distance,
        before,
        falls=falls,
        lower=lower,
        sure=high or not broken,
        lasts=lasts,
    )


def _place_in_file(line: LossLine) -> int:
    return line.number


def _vanished(lines: tuple[LossLine, ...]) -> LossLine | None:
    """The first line without a loss, if no later line has one, and it was never missing for so long."""
    runs = [tuple(run) for missing, run in groupby(lines, lambda line: line.loss is None) if missing]
    if not runs or lines[-1].loss is not None or any(len(run) >= len(runs[-1]) for run in runs[:-1]):
        return None
    return runs[-1][0]


def _is_high(known: list[LossLine]) -> bool:
    """Whether the last loss of all is far above the usual one."""
    losses = [line.loss for line in known if line.loss is not None]
    return len(losses) > _LEAST and losses[-1] > _FACTOR * median(losses[:-1]) > 0


def _raised(known: list[LossLine]) -> LossLine | None:
    """The first of the last losses that all stand far above the losses before them."""
    losses = [line.loss for line in known if line.loss is not None]
    best = None
    for size in range(1, len(losses) - _LEAST + 1):
        before, tail = losses[-size - 32 : -size], losses[-size:]
        usual = median(before)
        if usual > 0 and min(tail) > _FACTOR * usual and _stands_out(before, tail, usual):
            best = best if size == 1 and _came_back(before, tail[0]) else known[-size]
    return best


def _came_back(before: list[float], high: float) -> bool:
    """Whether the loss rose as high before and fell again, so that one such loss is nothing new."""
    return any(after >= high and after > earlier for earlier, after in pairwise(before))


def _stands_out(before: list[float], tail: list[float], usual: float) -> bool:
    change = max(median(_changes(before)), _TINY * usual)
    jumps = tail[0] - before[-1] >= _JUMP * change
    return jumps and min(tail) - usual >= (_STEADY if len(tail) > 1 else _SINGLE) * change


def _changes(losses: Iterable[float]) -> list[float]:
    """The changes from loss to loss. A bar may show one loss in all drawings of the next epoch."""
    return [abs(after - earlier) for earlier, after in pairwise(losses) if after != earlier] or [0.0]
