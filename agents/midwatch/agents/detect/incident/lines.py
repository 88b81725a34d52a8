"""Lines: hits and progress of a chunk change the job's state. Resent lines change nothing."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, groupby, repeat
from operator import itemgetter
from typing import cast

from midwatch.agents.detect.diagnosis.condor_events import LOST_ITS_SLOT, RUNS_AGAIN, condor_job
from midwatch.agents.detect.diagnosis.hindsight import may_explain
from midwatch.agents.detect.diagnosis.noted_lines import NOTED
from midwatch.agents.detect.incident.attempts import meet
from midwatch.agents.detect.incident.clocks import NodeClock, offset
from midwatch.agents.detect.incident.progress import ProgressLine, go_on, moves_on
from midwatch.agents.detect.incident.quorum import forget_silence
from midwatch.agents.detect.incident.rule_watches import count, count_hits, end_watch, is_watched, spend
from midwatch.agents.detect.incident.settling import end, revise, suspect, withdraw
from midwatch.agents.detect.incident.state import NodeState
from midwatch.agents.detect.incident.turn import Turn
from midwatch.streams.lines.foreign import PREFIX as FOREIGN
from midwatch.streams.records import Held, Hit, Hits, Line, Progress, Stop
from midwatch.streams.records.error_types import family

_RETRIES = "ray_train_retries"
"""The rule of Ray Train's own line that it starts its workers again."""
_NEW_SESSION = "tf_new_session"
"""The rule of TensorFlow's line that this process begins a new session."""
_HELD_PER_RULE_AND_RANK = 3
_HELD = 512
_HELD_PER_RULE = 16
_SPARE = 128
"""Held lines beyond `_HELD`, until the worst ones go together: sorting costs more than keeping them."""
_LEAST_STEPS = 100
"""A smaller number may stand in a line for any other reason."""
_NUMBERS = re.compile(r"(?<![\d.])\d+(?![\d.])")
_NOTED = 8
_NOTED_OF_A_FALLBACK = 3
_GENERATIONS = 1024


def on_hits(turn: Turn, record: Hits) -> None:
    """Fold what match found in one chunk."""
    origin = record.origin
    current = meet(turn, origin.incarnation, nodes=origin.nodes)
    node = turn.nodes.get(origin.node, NodeState())
    turn.nodes[origin.node] = replace(node, judged=_raised(node.judged, record.ends))
    if not current or turn.state.commanded:
        # The lines of another attempt, or the output of a job that our own command ends.
        return
    turn.set(bundle=record.bundle, shown_ms=turn.now_ms if record.progress else turn.state.shown_ms)
    if origin.shipper.startswith(FOREIGN):
        name = origin.shipper.removeprefix(FOREIGN)
        turn.open_finding(
            "no_beats", f"{name} ships its lines and sends no heartbeats: midwatch cannot see a stall"
        )
    fresh = silence_over = False
    clock = NodeClock(offset(node.offsets), record.logged_ms / 1000)
    counts = [more for more in record.counts if is_watched(turn, more.rule)]
    for kind, run in groupby(_in_order(record, node.judged, clock, _known(turn)), key=type):
        if kind is ProgressLine:
            steps = cast("list[ProgressLine]", list(run))
            if turn.state.stopped:
                steps = [step for step in steps if is_watched(turn, step.rule)]
            if not silence_over and moves_on(steps):
                forget_silence(turn)
                silence_over = True
            go_on(turn, origin.node, steps)
            continue
        for line in run:
            if isinstance(line, Stop):
                end_watch(turn, line)
            elif isinstance(line, Hit) and is_watched(turn, line.rule):
                fresh = True
                _hold(turn, line, record.logged_ms)
    if fresh:
        count(turn, counts)
    incident = turn.state.incident
    if incident is not None and incident.state == "ended":
        end(turn)
    revise(turn)


def _known(turn: Turn) -> list[Line]:
    """The lines of earlier chunks that a diagnosis may compare with new ones."""
    state = turn.state
    lines = [each.hit.line for each in (*state.held, *state.noted)]
    return lines if state.left is None else [*lines, state.left.line]


def _in_order(
    record: Hits, judged: Mapping[str, int], clock: NodeClock, known: Sequence[Line]
) -> Iterator[ProgressLine | Hit | Stop]:
    """The lines not judged before, by corrected time. Lines of one file stay in the order of the file.

    A line also gets no earlier time than the `known` lines above it in its file. Its printed time may be a
    whole second, which began before those lines.
    """
    node = record.origin.node
    files: dict[str, list[ProgressLine | Hit | Stop]] = {}
    for column in record.progress:
        mark = judged.get(column.generation, -1)
        steps = _steps(column, node, clock)
        if column.ends and min(column.ends) <= mark:
            steps = (step for step, ended in zip(steps, column.ends, strict=True) if ended > mark)
        files.setdefault(column.path, []).extend(steps)
    for hit in record.hits:
        if hit.end > judged.get(hit.generation, -1):
            files.setdefault(hit.line.path, []).append(_at(hit, clock.corrected(hit.line.time)))
    for stop in record.stops:
        # A stop comes last, so a hit on the line that ends the watch still counts.
        if stop.end > judged.get(stop.generation, -1):
            files.setdefault(stop.path, []).append(replace(stop, time=clock.corrected(stop.time)))
    timed: list[tuple[float, ProgressLine | Hit | Stop]] = []
    of_node: dict[str, list[Line]] = {}
    for each in known:
        if each.node == node:
            of_node.setdefault(each.path, []).append(each)
    for path, lines in files.items():
        first = min((_number(line) for line in lines), default=0)
        above = (each.time for each in of_node.get(path, ()) if each.number < first)
        latest = max(above, default=0.0)
        lines.sort(key=_number)
        for line in lines:
            time = _time(line)
            timed.append((latest, _at(line, latest)) if time < latest else (time, line))
            latest = max(latest, time)
    if len(files) > 1:
        timed.sort(key=itemgetter(0))
    for _, line in timed:
        yield line


def _steps(column: Progress, node: str, clock: NodeClock) -> Iterator[ProgressLine]:
    """The lines of a column. The last one carries the text."""
    size = len(column.steps)
    return map(
        ProgressLine,
        repeat(column.rule, size),
        repeat(node),
        repeat(column.path),
        column.numbers,
        map(clock.corrected, column.times) if clock.offset or clock.logged else column.times,
        column.steps,
        repeat(column.phase),
        repeat(column.total),
        column.losses or repeat(""),
        column.counts or repeat(""),
        column.grad_norms or repeat(""),
        chain(repeat(None, size - 1), (column.last,)),
        repeat(column.shows),
    )


def _number(line: ProgressLine | Hit | Stop) -> int:
    return line.line.number if isinstance(line, Hit) else line.number


def _time(line: ProgressLine | Hit | Stop) -> float:
    return line.line.time if isinstance(line, Hit) else line.time


def _at(line: ProgressLine | Hit | Stop, time: float) -> ProgressLine | Hit | Stop:
    if isinstance(line, Hit):
        return line if line.line.time == time else replace(line, line=replace(line.line, time=time))
    return line._replace(time=time) if isinstance(line, ProgressLine) else replace(line, time=time)


def _raised(judged: Mapping[str, int], ends: Mapping[str, int]) -> dict[str, int]:
    raised = dict(judged)
    for generation, end_at in ends.items():
        raised[generation] = max(end_at, raised.pop(generation, -1))
    return dict(list(raised.items())[-_GENERATIONS:])


def _tells_of_all_steps(turn: Turn, hit: Hit) -> bool:
    """Whether the program itself says so: it made its last step and counts them all in this line.

    Then ranks that lost each other behind that step did so while they left.
    """
    step, total = turn.state.step, turn.state.total
    if step is None or total is None or step < max(total, _LEAST_STEPS):
        return False
    lost = all(family(each.hit.error_type) == "comms" for each in turn.state.held)
    return lost and str(total) in _NUMBERS.findall(hit.line.text)


def _hold(turn: Turn, hit: Hit, logged_ms: int) -> None:
    if hit.role == "success":
        if hit.fallback and turn.state.held and not _tells_of_all_steps(turn, hit):
            return  # A script may say so behind the crash of what it ran.
        # The held lines stand before the job's success, so they did not end it.
        turn.set(succeeded=True, success_line=hit.line, held=(), noted=(), loops={})
        if turn.running():
            withdraw(turn, "the job reported success")
        return
    _forgive(turn, hit)
    state = turn.state
    if hit.role == "context" and hit.mode == "success":
        turn.set(left=hit)
    if may_explain(hit) or hit.aside or hit.rule in NOTED:
        _note(turn, hit, logged_ms)
    if hit.role not in ("cause", "consequence"):
        return
    if not spend(turn, hit):
        count_hits(turn, [hit])
        return
    if turn.index().alike(hit) >= _HELD_PER_RULE_AND_RANK:
        bare = turn.index().bare_beside(hit)
        if bare is None:
            count_hits(turn, [hit])
            return
        count_hits(turn, [bare.hit])
        turn.drop([bare])
    turn.hold(Held(hit, state.step if state.step is not None else -1, logged_ms))
    if len(turn.state.held) > _HELD + _SPARE:
        # Thousands of ranks may wait for the one with the cause, so the lines of worst rank go.
        worst = _worst(turn.index().by_precedence())
        count_hits(turn, [h.hit for h in worst])
        turn.drop(worst)
    suspect(turn, hit)


def _worst(ranked: Sequence[Held]) -> list[Held]:
    """The lines that go, so that `_HELD` stay. The best few of each rule may explain others, and go last."""
    seen = Counter[str]()
    few, more = list[Held](), list[Held]()
    for each in ranked:
        seen[each.hit.rule] += 1
        (few if seen[each.hit.rule] <= _HELD_PER_RULE else more).append(each)
    return [*few, *more][_HELD:]


def _note(turn: Turn, hit: Hit, logged_ms: int) -> None:
    """Note the first line of each rule and file since the last steps. New notes replace the oldest.

    Of a fallback rule the last lines count, because the words nearest to the end tell most. Lines that only
    stand aside replace none that may explain the end.
    """
    state, explains = turn.state, may_explain(hit)
    others = [each for each in state.noted if may_explain(each.hit) is not explains]
    kept = [each for each in state.noted if may_explain(each.hit) is explains]
    alike = [each for each in kept if each.hit.rule == hit.rule and each.hit.line.file == hit.line.file]
    if alike and not hit.fallback:
        return
    if len(alike) >= _NOTED_OF_A_FALLBACK:
        kept.remove(alike[0])
    note = Held(hit, state.step if state.step is not None else -1, logged_ms)
    turn.set(noted=(*others, *(*kept, note)[-_NOTED:]))


def _forgive(turn: Turn, hit: Hit) -> None:
    """Drop the held lines of which this hit shows that they ended nothing."""
    if hit.excuses is not None:
        _excuse(turn, hit)
    if hit.rule == _RETRIES:
        _begin_anew(turn)
    if hit.rule == _NEW_SESSION:
        own = [each for each in turn.state.held if each.hit.line.file == hit.line.file]
        _let_go(turn, own, "ignored", "TensorFlow begins a new session itself")
    if hit.rule == RUNS_AGAIN:
        _run_again(turn, hit)


def _begin_anew(turn: Turn) -> None:
    """Drop the held lines: Ray Train restarts its workers within the attempt, so they did not end it."""
    turn.set(held=(), noted=())
    if turn.state.incident is not None and turn.state.incident.state == "suspected":
        withdraw(turn, "Ray Train restarts its workers itself")


def _run_again(turn: Turn, hit: Hit) -> None:
    """Drop what HTCondor said of how this job lost its slot: HTCondor runs it again by itself."""
    job = condor_job(hit)
    lost = [
        each for each in turn.state.held if each.hit.rule in LOST_ITS_SLOT and condor_job(each.hit) == job
    ]
    _let_go(turn, lost, "run again", "HTCondor ran the job again")


def _excuse(turn: Turn, hit: Hit) -> None:
    """Drop the held exception whose handling raised this hit, because it did no harm itself."""
    place = (hit.line.file, hit.excuses)
    harmless = [each for each in turn.state.held if (each.hit.line.file, each.hit.line.number) == place]
    _let_go(turn, harmless, "handled", "the exception was handled")


def _let_go(turn: Turn, harmless: Sequence[Held], aside: str, why: str) -> None:
    """Note these held lines as harmless; without any other one, the incident that they began is withdrawn."""
    if not harmless:
        return
    for held in harmless:
        _note(turn, replace(held.hit, role="context", severity="info", aside=aside), held.logged_ms)
    turn.set(held=tuple(each for each in turn.state.held if each not in harmless))
    incident = turn.state.incident
    if incident is not None and incident.state == "suspected" and not turn.state.held:
        withdraw(turn, why)
