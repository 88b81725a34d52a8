"""Progress: how far the job has come. Later progress also clears lines that were suspected to end the job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain, islice
from operator import attrgetter
from typing import NamedTuple

from midwatch.agents.detect.diagnosis.noted_lines import LEFT_BEHIND, ended_its_process
from midwatch.agents.detect.incident.detecting import Watch
from midwatch.agents.detect.incident.resumption import EPOCH_LINES, judge
from midwatch.agents.detect.incident.settling import withdraw
from midwatch.agents.detect.incident.turn import Turn
from midwatch.agents.detect.line_order import earlier
from midwatch.rules.detectors.base import StepSeen
from midwatch.streams.records import Held, Line, Loop, Phase, Shows

_STEPS_TO_WITHDRAW = 2
_RISES = 2
"""So often a count rises before a loop is known to go round."""
_LOOPS = 32
_OF_THE_JOB = "*** JOB "
_ASKS = "job_requeues_itself"
_KILLED_FOR_MEMORY = "), being killed"
_KILLED_WITHIN_S = 120.0
"""Seconds in which a job that was told to end may make steps: SLURM's KillWait (30), a spot node's notice."""
_HELD_BACK, _COUNTS_HELD_BACK = 100, 340
"""So many new steps, or lines that only count, a buffer of 8 KiB may have held back."""


class ProgressLine(NamedTuple):
    """One progress line.

    `step` -1: the line shows only the phase. Its `count` then rises with each round of a loop: a progress
    bar, an epoch, a batch of an epoch, a clock. `shows`: see `midwatch.rules.model.Shows`; `life`: the job
    printed something.
    """

    rule: str
    node: str
    path: str
    number: int
    time: float
    step: int
    phase: Phase
    total: int | None
    loss: str
    count: str = ""  # type: ignore[assignment]  # it hides the method of tuples, which nobody calls
    grad_norm: str = ""
    line: Line | None = None
    shows: Shows = "step"

    @property
    def kind(self) -> str:
        """Numbers of two kinds are never compared: each rule counts its own, with or without an epoch."""
        return f"{self.rule}/{self.count.count(':')}"

    @property
    def file(self) -> tuple[str, str]:
        """The file (node and path) in which its number counts."""
        return (self.node, self.path)


def go_on(turn: Turn, node: str, lines: Sequence[ProgressLine]) -> None:
    """Fold progress lines of one node, in order, with no other line between them.

    A chunk holds hundreds of them. So the fold writes step, phase and losses into the state only once, after
    the last line. No effect of a single step reads those fields.
    """
    if not lines:
        return
    moving = [line for line in lines if _moves_on(line)]
    for line in lines:
        if not turn.state.trained:
            _shown_to_train(turn, line)
    state = turn.state
    step, phase, total = state.step, state.phase, state.total
    nodes, printed, watch = state.progress_nodes, state.progress_line, Watch(turn)
    first, interval = state.resumption.first_step, state.resumption.interval
    first_ms = state.resumption.first_step_ms
    first_epoch, epoch = state.resumption.first_epoch, state.resumption.epoch
    succeeded = state.succeeded
    for line in moving:
        reached = step if step is not None else -1
        succeeded = succeeded and not _trains_again(turn, line, reached)
        if line.step > reached:
            nodes = (node,)
        elif node not in nodes and (line.step == reached or not nodes):
            nodes = (*nodes, node)
        if line.line is not None:
            printed = line.line if line.line.time == line.time else replace(line.line, time=line.time)
        phase = line.phase
        total = line.total if line.total is not None else total
        if line.step >= 0:
            if line.phase == "training":
                first_ms = turn.now_ms if first is None else first_ms
                first = line.step if first is None else first
                interval = line.step - reached if line.step > reached >= 0 else interval
            step = max(line.step, reached)
            if turn.state.held or turn.state.noted or turn.state.incident is not None:
                _went_on(turn, line)
        elif line.count:
            epoch, first_epoch = _epochs(line, epoch, first_epoch)
            _counted_on(turn, line)
        _show(watch, line, turn.now_ms, reached)
    known = resumption = turn.state.resumption
    if (first, first_ms, interval, first_epoch, epoch) != _shown_of(known):
        resumption = replace(
            known,
            first_step=first,
            first_step_ms=first_ms,
            interval=interval,
            first_epoch=first_epoch,
            epoch=epoch,
        )
    watch.keep(
        step=step,
        phase=phase,
        total=total,
        succeeded=succeeded,
        progress_nodes=nodes,
        progress_line=printed,
        resumption=resumption,
    )
    judge(turn)


_shown_of = attrgetter("first_step", "first_step_ms", "interval", "first_epoch", "epoch")


def _trains_again(turn: Turn, line: ProgressLine, reached: int) -> bool:
    """Whether a job that had reported success made another training step: it has more than one training.

    Only a step behind the report in the same file shows it: lines of other nodes may arrive late. Ranks that
    lag print the last step once more, and an evaluation prints no step of the training. A loop without steps
    has to go round. Some trainers draw their last line again behind their word of success.
    """
    success = turn.state.success_line
    if success is None or line.file != (success.node, success.path) or line.number <= success.number:
        return False
    if line.phase != "training" or not line.loss:
        return False
    return line.step != reached if line.step >= 0 else _goes_round(turn, line)


def _goes_round(turn: Turn, line: ProgressLine) -> bool:
    """Whether its loop is now known to go round; until then, count the line."""
    if not (at := _place(line)):
        return False
    name = f"{line.kind} {line.node}:{line.path}"
    loops = dict(turn.state.loops)
    loop = _gone_round(loops.pop(name, None), at)
    if loop.rises >= _RISES:
        return True
    turn.set(loops=dict([*loops.items(), (name, loop)][-_LOOPS:]))
    return False


def moves_on(lines: Sequence[ProgressLine]) -> bool:
    """Whether one of the lines ends a silence. A number that may only be counted up ends none."""
    return any(map(_moves_on, lines))


def _moves_on(line: ProgressLine) -> bool:
    return line.shows != "climb"


def _epochs(line: ProgressLine, last: int | None, first: int | None) -> tuple[int | None, int | None]:
    """The last and the first epoch of the start, the line's own included. Its count may be `EPOCH:BATCH`."""
    told, colon, _ = line.count.partition(":")
    if not told.isdecimal() or not (colon or line.rule in EPOCH_LINES):
        return last, first
    return int(told), int(told) if first is None else first


def _shown_to_train(turn: Turn, line: ProgressLine) -> None:
    """Whether the line, or its count with those before it, shows that the run trains."""
    if line.shows == "life" or line.phase != "training":
        return
    at = _place(line)
    told = line.step >= 0 or line.loss != "" or (len(at) > 1 and at[-1] > 0)
    if line.shows == "training" or (told and line.shows == "step") or _goes_round(turn, line):
        turn.set(trained=True, loops={})


def _place(line: ProgressLine) -> tuple[float, ...]:
    """Where its loop is; nothing if the line gives no number."""
    try:
        at = tuple(float(part) for part in line.count.split(":"))
    except ValueError:
        return ()
    return at if all(math.isfinite(number) for number in at) else ()


def _gone_round(loop: Loop | None, at: tuple[float, ...]) -> Loop:
    """A lower number changes nothing: it is another loop's of the same kind, which prints less."""
    if loop is None:
        return Loop(at)
    return Loop(at, loop.rises + 1) if at > loop.at else loop


def _still_diverged(line: ProgressLine, held: Held) -> bool:
    """Whether broken numbers remain. A run goes on with them, so only a usual loss shows their end.

    A trainer may print the loss in one line and count in another. Once a finite loss was counted behind the
    held line, a line without a loss shows the end too. Nothing but such a loss leaves a loop there.
    """
    if held.hit.error_type != "numerical_instability":
        return False
    if not line.loss:
        return not held.loops
    try:
        return not abs(float(line.loss)) < _NO_USUAL_LOSS  # nan is not below it either
    except ValueError:
        return True


def _not_yet_killed(line: ProgressLine, held: Held) -> bool:
    """Whether the held line announces the end of the job, and the step came before that.

    Only clocks tell. Lines without one have the time of their read, or of the line above.
    """
    return _announces_the_end(held) and 0 < line.time - held.hit.line.time <= _KILLED_WITHIN_S


def _announces_the_end(held: Held) -> bool:
    """Whether SLURM says in the held line that it ends the job, or anybody that the node will be taken."""
    kind, text = held.hit.error_type, held.hit.line.text
    if kind == "host_oom":
        return _KILLED_FOR_MEMORY in text
    return kind == "preemption" or (kind in ("cancelled", "slurm_failure") and _OF_THE_JOB in text)


def _diverged_on(line: ProgressLine, held: Held) -> Held:
    """The held line whose numbers remain broken. A loss that is broken anew takes back the finite one."""
    return replace(held, loops={}, count=None, rises=0) if line.loss and held.loops else held


_NO_USUAL_LOSS = 1e12
_step_of = attrgetter("step")


def _after_step(line: ProgressLine, held: tuple[Held, ...], least: int | None) -> tuple[Held, ...]:
    """The held lines that the step leaves; the very same tuple if it changes nothing.

    `least`: the lowest step among the held lines; None without any.
    """
    if least is None or line.step <= least:
        # A step that each held line knows proves nothing, and after a failure thousands of ranks print it.
        return held
    kept = tuple(_held_after_step(line, held))
    return held if kept == held else kept


def _held_after_step(line: ProgressLine, held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line):
            yield replace(each, step=line.step) if line.step > each.step else each
        elif _still_diverged(line, each):
            yield _diverged_on(line, each)
        elif _not_yet_killed(line, each) or line.step < each.step + _STEPS_TO_WITHDRAW:
            yield each
        elif _announces_the_end(each) and each.rises < _RISES:
            yield replace(each, rises=each.rises + 1)  # a line that waited in a buffer shows no more work


def _held_after_count(line: ProgressLine, at: tuple[float, ...], held: Iterable[Held]) -> Iterator[Held]:
    for each in held:
        if not earlier(each.hit.line, line) or _not_yet_killed(line, each):
            yield each
            continue
        if _still_diverged(line, each):
            yield _diverged_on(line, each)
            continue
        before = each.loops.get(line.kind) or _of_earlier_version(each, at)
        loop = _gone_round(before, at)
        if loop.rises < _RISES:
            loops = {**each.loops, line.kind: loop}
            yield each if loops == each.loops else replace(each, loops=loops, count=None, rises=0)


def _of_earlier_version(held: Held, at: tuple[float, ...]) -> Loop | None:
    """The one loop that an earlier version kept, if the line counts by one number too."""
    return Loop((held.count,), held.rises) if held.count is not None and len(at) == 1 else None


def _counted_on(turn: Turn, line: ProgressLine) -> None:
    """Drop held lines after which a loop without steps went on: its count rose twice after the line.

    An exception that ended its process stays noted for as many more counts as a buffer may hold back.
    """
    held, noted = turn.state.held, turn.state.noted
    if not (held or any(each.loops for each in noted)) or not (at := _place(line)):
        return
    kept = tuple(_held_after_count(line, at, held))
    known = {id(each.hit) for each in kept}
    dropped = (each for each in held if each.hit.role == "cause" and id(each.hit) not in known)
    ended = (each for each in dropped if ended_its_process(each.hit))
    left = (replace(_left_behind(each, each.step), loops={line.kind: Loop(at)}) for each in islice(ended, 1))
    still = (*_notes_after_count(line, at, noted), *left)
    if still != noted:
        turn.set(noted=still)
    if kept == held:
        return
    turn.set(held=kept)
    incident = turn.state.incident
    if incident is not None and incident.state == "suspected" and not kept:
        withdraw(turn, "the job went on: its loop counts on")


def _notes_after_count(line: ProgressLine, at: tuple[float, ...], noted: Iterable[Held]) -> Iterator[Held]:
    for each in noted:
        loop = each.loops.get(line.kind)
        gone = _gone_round(loop, at)
        if gone is loop or not each.loops:
            yield each
        elif gone.rises < _COUNTS_HELD_BACK:
            yield replace(each, loops={**each.loops, line.kind: gone})


def _went_on(turn: Turn, line: ProgressLine) -> None:
    """Drop held lines after which the job went on: its step is two beyond the step of the line.

    Other ranks may print two steps after one that failed. So the first cause stays noted for two more.
    """
    held = turn.state.held
    kept = _after_step(line, held, turn.index().least_step)
    noted = turn.state.noted
    still = _notes_after_step(line, noted, ended=any(map(_announces_the_end, kept)))
    if kept is not held:
        turn.set(held=kept)
        known = {id(each.hit) for each in kept}
        left = (each for each in held if each.hit.role == "cause" and id(each.hit) not in known)
        still = (*still, *(_left_behind(each, line.step) for each in islice(left, 1)))
    if still is not noted:
        turn.set(noted=still)
    incident = turn.state.incident
    ended = turn.state.ended_ms is not None and turn.state.stalled is None
    if incident is None or ended:
        # The report of an end may overtake the lines, so this step was made before the end.
        return
    if turn.state.stalled is not None and turn.state.scheduler is None:
        if line.step >= (incident.verdict.step or 0) + _STEPS_TO_WITHDRAW:
            withdraw(turn, f"the job went on: step {line.step}")
    elif incident.state == "suspected" and not kept:
        withdraw(turn, f"the job went on: step {line.step}")


def _left_behind(held: Held, step: int) -> Held:
    """The cause as a note. It tells why, should the job only wait from this step on."""
    hit = replace(held.hit, role="context", severity="info", aside=LEFT_BEHIND)
    return Held(hit, step, held.logged_ms)


def _notes_after_step(line: ProgressLine, noted: tuple[Held, ...], *, ended: bool) -> tuple[Held, ...]:
    """The notes that the step leaves; the very same tuple if it changes nothing.

    `ended`: a line is held that announces the end. What the job asked for explains it as long.

    An exception that ended its process stays noted for more steps. What the others had printed before comes
    out when their buffers are full, or as they end. Its own rank prints none any more.
    """
    asked = tuple(each for each in noted if each.hit.rule == _ASKS) if ended else ()
    if asked:
        others = tuple(each for each in noted if each not in asked)
        left = _notes_after_step(line, others, ended=False)
        return noted if left is others else (*asked, *left)
    own = [each for each in noted if each.hit.aside == LEFT_BEHIND and ended_its_process(each.hit)]
    if not own:
        return _after_step(line, noted, min(map(_step_of, noted), default=None))
    others = tuple(each for each in noted if each not in own)
    left = _after_step(line, others, min(map(_step_of, others), default=None))
    return (*left, *chain.from_iterable(_held_back(line, each) for each in own))


def _held_back(line: ProgressLine, note: Held) -> Iterator[Held]:
    if line.step <= note.step or not earlier(note.hit.line, line):
        yield note
    elif note.rises < _HELD_BACK and not _of_its_rank(line, note.hit.line):
        yield replace(note, step=line.step, rises=note.rises + 1)


def _of_its_rank(line: ProgressLine, ended: Line) -> bool:
    rank = _rank(ended)
    return rank is not None and line.line is not None and _rank(line.line) == rank


def _rank(line: Line) -> int | None:
    return line.rank if line.rank is not None else line.claimed_rank


def _show(watch: Watch, line: ProgressLine, now_ms: int, reached: int) -> None:
    where, printed = (line.node, line.path, line.number), (line.loss, line.grad_norm, line.rule)
    if line.step >= 0:
        watch.show(StepSeen(now_ms, *where, line.step, line.phase, *printed))
    elif line.loss and line.phase == "training":
        watch.show(StepSeen(now_ms, *where, reached, line.phase, *printed, own=False, at=_place(line)))
