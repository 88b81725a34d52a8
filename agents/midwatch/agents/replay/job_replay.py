"""One job's log files through match, detect and decide, without a stream."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import partial

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.replay.endings.closing_lines import ClosingFailure, closing_failure
from midwatch.agents.replay.endings.contradicted_end import counted_end, failure_at_the_end, is_done
from midwatch.agents.replay.endings.held_back import HELD_BACK, held_back_behind
from midwatch.agents.replay.endings.open_spike import Losses, Spike, broken_at_end, is_over
from midwatch.agents.replay.endings.said_before_exit import said_before_exit
from midwatch.agents.replay.endings.seen_at_the_end import with_closing, with_cut_name, with_spike
from midwatch.agents.replay.endings.told_undone import UNDONE, cuts_behind_failures, first_undone
from midwatch.agents.replay.matched_files import Damage, in_order, matching
from midwatch.agents.replay.pipeline import JobWatch, PipelineStep, step
from midwatch.agents.replay.reading.archives import Advance, nothing
from midwatch.agents.replay.reading.log_files import (
    INCARNATION,
    LogFile,
    as_printed,
    last_lines,
    line_of,
    origin_of,
    text_of,
    up_to,
)
from midwatch.agents.replay.replayed import Replayed
from midwatch.agents.replay.undated_ends import with_late_ends
from midwatch.agents.replay.went_on.aftermath import (
    LastFailure,
    has_work_above,
    is_stray,
    tells_an_end,
    went_on,
)
from midwatch.agents.replay.went_on.caught_by_workers import StepLines, caught_by_workers
from midwatch.agents.replay.went_on.counted_on import last_count
from midwatch.agents.replay.went_on.only_warned_of import only_warned_of
from midwatch.agents.replay.went_on.printed_then_succeeded import got_over_by_its_word
from midwatch.agents.replay.went_on.process_ends import never_began
from midwatch.agents.replay.went_on.results_behind import has_results_behind
from midwatch.agents.replay.went_on.success_elsewhere import got_over_before_the_success
from midwatch.agents.replay.went_on.worked_on import worked_on
from midwatch.agents.rulesets.bundles import CompiledBundle
from midwatch.agents.schedulers.base import StartState
from midwatch.agents.schedulers.saved_job import FailedLastStep
from midwatch.rules.detectors import DETECTORS
from midwatch.rules.detectors.base import Detectors
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Decision,
    Event,
    Finding,
    Heartbeat,
    Hit,
    Hits,
    Incident,
    Verdict,
)

_HITS_MS, _END_MS, _HEARTBEAT_MS = 1, 2, 3
"""The clock of a replay: all lines stand before the end, and the last heartbeat behind it."""
MOST_HITS = 20_000
"""Hits that a result lists. The verdict rests on all of them."""


def replay(  # noqa: PLR0913  # what a log alone cannot tell; each has its default
    job: str,
    files: Sequence[LogFile],
    watched: CompiledBundle,
    book: Rulebook,
    limits: WatchLimits,
    *,
    detectors: Detectors = DETECTORS,
    processes: int = 1,
    advance: Advance = nothing,
    end: StartState | None = None,
    failed_step: FailedLastStep | None = None,
    source: tuple[str, str] = ("replay", "file"),
    cut: bool = False,
) -> Replayed:
    """Watch all files of one job. The time of the lines counts, and the order of `files` does not.

    `end`: how the scheduler says that the job ended. Without it a log with a failure is taken for an end.
    `failed_step`: what its record says against a good end. `source`: that scheduler, and the job's id there.
    `cut`: the files were cut off, so their last lines are not the job's last words on what is done.
    Raises OSError if a file cannot be read.
    """
    run = _JobReplay(job, book, limits, detectors)
    again = partial(
        replay, job, watched=watched, book=book, limits=limits, detectors=detectors, source=source
    )
    hits, unlisted, damages = list[Hit](), 0, list[Damage]()
    with matching(watched, processes) as means:
        for record in in_order(job, files, watched, means, advance):
            if isinstance(record, Damage):
                damages.append(record)
                continue
            run.take(record, _HITS_MS)
            listed = record.hits[: MOST_HITS - len(hits)]
            hits += listed
            unlisted += len(record.hits) - len(listed)
    place = {file.path: index for index, file in enumerate(files)}
    hits.sort(key=lambda hit: place[hit.line.path])
    done = run.watch.job.state.succeeded
    undone = first_undone(files, succeeded=done) if end is None and not cut else None
    held = bool(run.watch.job.state.held) and end is None
    over_it = _went_on(run, files, hits) if held and undone is None else ""
    if end is not None or (run.watch.job.state.held and not over_it):
        if end is not None:
            end = counted_end(end, failed_step, run.watch.job.state)
        result = _ended(copy(run), end, source)
        if end is not None and result.verdict.mode == "success":
            at = failure_at_the_end(run.watch.job.state, files, run.failures, hits)
            judged = _against_a_good_end(run, end, source, at) if at else result
            result = judged if judged.verdict.state == "failed" else result
        result = with_closing(result, _said(run, result, files, hits), files)
        result = replace(result, verdict=_with_line_as_printed(result.verdict, files))
        if end is None:
            result = with_cut_name(result, files)
        elif _ended_for_no_known_reason(result) and not run.watch.job.state.succeeded:
            result = with_closing(result, _closing(run, files, hits), files)
    elif not held and (late := with_late_ends(files, hits)):
        return again(files=late, processes=processes, cut=cut)
    else:
        result = _not_failed(run, files, hits, whole=not damages, results=over_it == RESULTS)
    if undone is not None and result.verdict.state != "failed" and not damages:
        ends = (again(files=[each], cut=True) for each in cuts_behind_failures(files, hits))
        failed = (each for each in ends if each.verdict.state == "failed")
        result = next(failed, with_closing(result, undone, files))
        over_it = UNDONE
    elif not cut and not damages and (up_to_it := _held_back(run, result, files, end)):
        result = again(files=[up_to_it], cut=True)
        over_it = HELD_BACK
    if over_it:
        result = replace(result, assumed=(*result.assumed, over_it))
    partly = tuple(f"{damage.path}: {damage.what}; its lines up to there count" for damage in damages)
    assumed = (*result.assumed, *partly)
    return replace(result, hits=tuple(hits), unlisted=unlisted, assumed=assumed, steps=run.steps)


def _not_failed(
    run: _JobReplay, files: Sequence[LogFile], hits: Sequence[Hit], *, whole: bool, results: bool
) -> Replayed:
    """The verdict where no line tells of a failure that counts; the end of a whole file may show one.

    `results`: the program told of its results behind its last failure.
    """
    result = _without_failure(run, whole=whole)
    if not whole:
        return result
    done = run.watch.job.state.succeeded
    spike = _open_spike(run, files, done=done)
    if spike is not None:
        return with_spike(result, spike.error_type, spike.first, files)
    broken = broken_at_end(run.losses, {file.path: file for file in files}, done=done)
    if broken is not None:
        return with_spike(result, "numerical_instability", broken, files)
    if done or results:
        return result
    return with_closing(result, _closing(run, files, hits), files)


class _JobReplay:
    """The watch over one job while it runs. Its clock counts steps of a run, because nothing here waits."""

    def __init__(self, job: str, book: Rulebook, limits: WatchLimits, detectors: Detectors) -> None:
        self.job, self.book, self.limits, self.detectors = job, book, limits, detectors
        self.watch = JobWatch()
        self.findings: dict[str, Finding] = {}
        self.losses = Losses()
        self.failures = LastFailure()
        self.step_lines = StepLines()
        self.steps: tuple[int, int] | None = None
        self.incident: Incident | None = None
        self.decision: Decision | None = None

    def take(self, event: Event, now_ms: int) -> None:
        if isinstance(event, Hits):
            self.losses.take(event)
            self.failures.take(event)
            self.step_lines.take(event)
            printed = [step for column in event.progress for step in column.steps if step >= 0]
            if printed:
                self.steps = (printed[0] if self.steps is None else self.steps[0], printed[-1])
        result: PipelineStep = step(
            self.watch,
            self.job,
            event,
            now_ms,
            limits=self.limits,
            book=self.book,
            detectors=self.detectors,
        )
        self.watch = result.watch
        for record in result.records:
            if isinstance(record, Finding) and record.open:
                self.findings.setdefault(record.kind, record)
            elif isinstance(record, Incident) and record.state == "settled":
                self.incident = record
        for decision in result.decisions:
            if decision.incident:
                self.decision = decision


def _with_line_as_printed(verdict: Verdict, files: Sequence[LogFile]) -> Verdict:
    """The verdict with the root line as the file holds it, colours included, so that a search finds it."""
    number = verdict.root_line_number
    file = next((file for file in files if file.path == verdict.root_file), None)
    if file is None or number is None:
        return verdict
    return replace(verdict, root_line=as_printed(file, number, verdict.root_line))


_ASSUMED_END = StartState("ended", "ended", reason="assumed: the log holds a failure")


def _ended(run: _JobReplay, end: StartState | None, source: tuple[str, str]) -> Replayed:
    state = end or _ASSUMED_END
    cluster, native_id = source
    fact = state.fact(run.job, INCARNATION, native_id, cluster, before="running")
    run.take(fact, _END_MS)
    run.take(Heartbeat(origin_of(run.job), 1, 0.0, 0.0, 5.0, True, 0, final=True), _HEARTBEAT_MS)
    incident, decision = run.incident, run.decision
    if incident is None or decision is None:
        raise AssertionError(
            "detect settles an end after the last node's final heartbeat, and decide decides it"
        )
    unknown_end = () if end else ("the run ended, and its exit code is unknown",)
    assumed = (
        *unknown_end,
        "no restart of the budget is spent",
        f"the policy is {decision.policy}",
        "a file shows no silence, so replay looks for no stall",
    )
    reason = decision.reason.partition("; observing only")[0]
    if incident.superseded_by.startswith("replay:") and incident.superseded_by in reason:
        reason = state.reason  # a file's next start has no name; the scheduler's word tells of it
    return Replayed(
        job=run.job,
        verdict=incident.verdict,
        decision=replace(decision, reason=reason),
        findings=tuple(run.findings.values()),
        evidence=incident.evidence,
        hits=(),
        assumed=assumed,
        rivals=incident.other_candidates,
        told=fact if end else None,
    )


def _against_a_good_end(run: _JobReplay, end: StartState, source: tuple[str, str], place: str) -> Replayed:
    """The verdict on a log that ends in a failure though its job ended well. So a person decides."""
    result = _ended(run, replace(end, mode=None, exit_code=None), source)
    told = None if result.told is None else replace(result.told, mode=end.mode, exit_code=end.exit_code)
    reason = (
        f"the job ended well, but its log ends in the failure of {place}: a pipe or a script may have lost "
        "its exit code"
    )
    held = replace(result.decision, action="hold", reason=reason)
    return replace(result, decision=held, told=told)


RESULTS = "behind its last failure the program printed on as before, up to its results"
_OF_CHILDREN = ("native_crash", "host_oom")
"""A program outlives the crash of a process that it began."""


def _went_on(run: _JobReplay, files: Sequence[LogFile], hits: Sequence[Hit]) -> str:
    """What shows that the job went on behind its last failure line; "" if nothing does."""
    last = run.failures.numbers
    known = [(file, last[file.path]) for file in files if file.path in last]
    if known and all(_caught(run, file, hits) for file, _ in known):
        return "steps came behind the same exceptions of Ray's workers before, so they ended nothing"
    state = run.watch.job.state
    held, trained = [each.hit for each in state.held], state.trained or state.step is not None
    if (
        known
        and all(is_stray(hit, trained=trained) for hit in held)
        and all(has_work_above(*at) for at in known)
    ):
        return "a shell took a stray word for a command behind the command's end, and no line says it failed"
    told = only_warned_of(known, held) or got_over_by_its_word(known, held, hits, succeeded=state.succeeded)
    if told := told or _up_to_its_results(known, held):
        return told
    if success := got_over_before_the_success(held, hits, files, last):
        return f"the job reported its success in {success}, which the failures of other files may precede"
    if not known or not _works_on(run, known, held, trained=trained):
        return ""
    places = ", ".join(f"{file.path}:{number}" for file, number in known)
    return f"the log goes on for many lines behind {places}, so that failure ended nothing"


def _works_on(
    run: _JobReplay, known: Sequence[tuple[LogFile, int]], held: Sequence[Hit], *, trained: bool
) -> bool:
    """Whether work stands behind those lines of all files."""
    if any(never_began(text_of(file), line_of(file, number).encode()) for file, number in known):
        return False
    ended = any(map(tells_an_end, held))
    return all(
        went_on(file, number, run.failures.weight_behind(file, held, trained=trained))
        or worked_on(file, number, ended=ended)
        for file, number in known
    )


def _up_to_its_results(known: Sequence[tuple[LogFile, int]], held: Sequence[Hit]) -> str:
    """`RESULTS` if the program printed on behind those lines, and nobody outside said that it had ended.

    What a thread could not write to a disk is missing, whatever results follow.
    """
    unwritten = any(hit.error_type == "storage" and hit.captures.get("in_a_thread") for hit in held)
    ended = any(tells_an_end(hit) and hit.error_type not in _OF_CHILDREN for hit in held)
    if not known or unwritten or ended:
        return ""
    return RESULTS if all(has_results_behind(*at) for at in known) else ""


def _caught(run: _JobReplay, file: LogFile, hits: Sequence[Hit]) -> bool:
    """Whether all failures of the file are exceptions that its workers get over."""
    failures = [hit for hit in hits if hit.line.path == file.path and hit.role in ("cause", "consequence")]
    steps = sorted(run.step_lines.numbers[file.path])
    return caught_by_workers(file, failures, run.failures.numbers[file.path], steps)


def _open_spike(run: _JobReplay, files: Sequence[LogFile], *, done: bool) -> Spike | None:
    """The first spike that is open at the end of its file. `done`: the job told of its success."""
    of = {file.path: file for file in files}
    spikes = (each for each in run.losses.open_spikes() if each.lasts or not done)
    return next((each for each in spikes if not is_over(of[each.first.path], each)), None)


def _ended_for_no_known_reason(result: Replayed) -> bool:
    """Whether only the scheduler says that the job failed, and nobody has started it again."""
    verdict = result.verdict
    vague = verdict.error_type in ("unknown", "native_crash", "user_interrupt") and not verdict.root_file
    spiked = verdict.error_type in ("loss_spike", "numerical_instability") and not verdict.rule
    return (vague or spiked) and result.decision.action == "hold"


def _held_back(
    run: _JobReplay, result: Replayed, files: Sequence[LogFile], end: StartState | None
) -> LogFile | None:
    """The job's only file up to the exception behind which a buffer was written, if that hid a failure."""
    if (
        end is not None
        or len(files) != 1
        or result.verdict.state == "failed"
        or run.watch.job.state.succeeded
    ):
        return None
    number = held_back_behind(files[0])
    return up_to(files[0], number) if number else None


def _closing(run: _JobReplay, files: Sequence[LogFile], hits: Sequence[Hit]) -> ClosingFailure | None:
    """The failure in which the first such file ends."""
    trained, done = run.watch.job.state.step is not None, is_done(run.watch.job.state)
    stepped = {
        each.path: max(run.failures.last_step.get(each.path, 0), last_count(last_lines(each)))
        for each in files
    }
    ends = (closing_failure(each, hits, stepped[each.path], trained=trained, done=done) for each in files)
    return next((end for end in ends if end is not None), None)


def _said(
    run: _JobReplay, result: Replayed, files: Sequence[LogFile], hits: Sequence[Hit]
) -> ClosingFailure | None:
    """What the program said above the report of its exit code, if the verdict rests on no more than that."""
    root = next((hit for hit in result.evidence if hit.rule == result.verdict.rule), None)
    file = next((file for file in files if file.path == result.verdict.root_file), None)
    if root is None or file is None or result.decision.action != "hold":
        return None
    return said_before_exit(file, root, hits, run.failures.last_step.get(file.path, 0))


def _without_failure(run: _JobReplay, *, whole: bool) -> Replayed:
    """The verdict on a log without a failure. Nobody knows what the missing end of a log would say."""
    state = run.watch.job.state
    known = state.succeeded or state.trained or state.step is not None
    verdict = Verdict(
        state="healthy" if state.succeeded or (known and whole) else "unknown",
        mode="success" if state.succeeded else None,
        error_type="",
        step=state.step,
        phase=state.phase if known else None,
        bundle=state.bundle,
    )
    reason = "the log holds no failure" if known else "no rule knows a line of the log"
    if known and not whole:
        reason += " up to where it is cut off or damaged"
    decision = Decision(run.job, 1, "", 0, "none", run.book.default_policy, reason, _HITS_MS, False)
    assumed = ("a file shows no silence, so replay looks for no stall",)
    return Replayed(run.job, verdict, decision, tuple(run.findings.values()), (), (), assumed)
