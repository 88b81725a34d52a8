"""Carries out claimed commands: look, ask the reconciler, store its memory, act, look again. Shell.

The reconciler decides; this module carries out. It reads the arming marks before every act. If a person
disarmed the job, a command that has done nothing yet ends, and a command that has begun waits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from midwatch.agents.executor import reconcile as r
from midwatch.agents.executor.claims import Claim
from midwatch.agents.executor.consumer import Desk, allowed, final_outcome
from midwatch.agents.executor.dependents import point_dependents
from midwatch.agents.reporter import say, step_line
from midwatch.agents.schedulers.base import (
    Cluster,
    ClusterUnreachable,
    Hint,
    SchedulerJob,
    StartSpec,
    StartState,
)
from midwatch.agents.schedulers.resume import ResumePoint, newest
from midwatch.agents.schedulers.wrapping import start_spec
from midwatch.agents.watcher.cancellation_notes import note_cancellation
from midwatch.streams.errors import ConfigurationError
from midwatch.streams.failpoints import failpoint
from midwatch.streams.host.clock import now_ms
from midwatch.streams.records import Command, Spec
from midwatch.streams.records.effect_keys import effect_key
from midwatch.streams.records.identity import native_id
from midwatch.streams.telemetry.trace_ids import effect_span, traceparent

_BLIND_PAUSE_S = 2.0
_DISARMED_PAUSE_S = 1.0
_DUPLICATES_S = 300.0
_DUPLICATES_PAUSE_S = 10.0
_CHECKPOINT = ("checkpoint_step", "checkpoint", "checkpoint_written_ms", "checkpoint_unit")
_SKIPPED = "checkpoint_skipped"
_SKIPPED_CHARACTERS = 500
_NO_CHECKPOINT = "; see that the training saves into --checkpoint-dir, under a name that docs/resume.md lists"
_LOST = "Redis lost the claim while it was being carried out"


@dataclass(slots=True)
class Finished:
    """A closed command whose slow acts may still take effect. Times are monotonic seconds."""

    command: Command
    cluster: Cluster
    winner: str
    until: float
    next_look: float


class OpenCommands:
    """All open commands of this executor."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._due: dict[str, float] = {}
        self._finished: dict[str, Finished] = {}  # by start key
        self._logged_reasons: dict[str, str] = {}  # the last one of each open command, by its id

    def give_up_lost(self) -> None:
        """Ends the commands that an earlier executor accepted and that Redis lost while none ran.

        Call it once at the start. Kafka does not deliver these commands again, because their offsets are
        committed: nobody else would report their end.
        """
        for outcome in self._desk.census.accepted():
            if not self._desk.claims.knows(outcome.command):
                self._desk.reporter.event(replace(outcome, state="expired", reason=_LOST))

    @property
    def count(self) -> int:
        """How many commands were open at the last turn."""
        return len(self._due)

    def turn(self) -> float:
        """Advances all open commands that are due. Returns seconds until the next is due, or infinity."""
        look = self._desk.claims.look(now_ms())
        self._give_up(look.lost)
        claims = look.open
        for claim in claims:
            if self._due.get(claim.command.id, 0.0) <= time.monotonic():
                pause = self._advance(claim)
                self._due[claim.command.id] = time.monotonic() + pause
        open_now = {claim.command.id for claim in claims}
        self._due = {name: due for name, due in self._due.items() if name in open_now}
        self._logged_reasons = {k: v for k, v in self._logged_reasons.items() if k in open_now}
        self._sweep_duplicates({_key(claim.command) for claim in claims})
        return max(0.0, min(self._due.values(), default=math.inf) - time.monotonic())

    def _give_up(self, commands: tuple[Command, ...]) -> None:
        """Ends commands whose claims Redis lost.

        The scheduler still shows how far each got, because its jobs carry the effect keys. Whoever carries
        out the next command of the attempt looks there first.
        """
        for command in commands:
            self._desk.reporter.event(final_outcome(command, "expired", _LOST), command=command)

    def _advance(self, claim: Claim) -> float:  # noqa: PLR0911 - one a step
        command = claim.command
        spec = self._desk.census.spec(command.spec)
        cluster = self._desk.clusters.get(spec.cluster) if spec else None
        if spec is None or cluster is None:
            return _BLIND_PAUSE_S  # both were there at acceptance; the census may still be reading `specs`
        known = r.memory(claim.memory)
        pending = r.PendingCommand(
            old=command.incarnation,
            start_key=_key(command),
            not_before=command.not_before_ms / 1000,
            expires=command.expires_ms / 1000,
        )
        try:
            view = self._look(command, cluster, known)
        except ClusterUnreachable as error:
            self._log_once(claim, "blind → wait", error.what)
            return _BLIND_PAUSE_S
        step = r.next_step(pending, known, view, _timing(cluster))
        match step:
            case r.Wait():
                least, most = (1.0, 2.0) if cluster.holds else (0.05, 1.0)
                return min(max(step.seconds, least), most)
            case r.Remember():
                self._keep(claim, step.memory)
            case r.Finish():
                return self._finish(claim, step, cluster, spec)
            case _:
                arming = allowed(self._desk, command, armed_by_spec=spec.armed)
                if arming.armed:
                    self._act(claim, step, cluster, spec, view)
                elif known.tried_at or known.first_cancelled_at:
                    self._log_once(claim, "begun → wait", arming.reason)
                    return _DISARMED_PAUSE_S
                else:
                    return self._finish(
                        claim, r.Finish("failed", arming.reason, untouched=True), cluster, spec
                    )
        return 0.0

    def _act(
        self, claim: Claim, step: r.Submit | r.Release | r.Cancel, cluster: Cluster, spec: Spec, view: r.View
    ) -> None:
        command, key = claim.command, _key(claim.command)
        resume = None
        if not isinstance(step, r.Cancel):
            resume, skipped = _resume_point(spec)
            found = _words(resume) | ({_SKIPPED: skipped} if skipped else {})
            claim = replace(claim, memory={**_without_checkpoint(claim.memory), **found})
        kept = self._keep(claim, step.memory)
        if kept is None:  # another executor has the command, or Redis has lost it: look again before any act
            return
        claim = kept
        failpoint("act")
        match step:
            case r.Submit():
                self._log(claim, f"{view.old.word.lower() or 'old'} → submit", step.reason)
                after = native_id(command.incarnation)
                try:
                    start = _start(spec, command, resume, chooses=cluster.holds, traces=self._desk.traces)
                except ConfigurationError as error:
                    hint = Hint("refused", str(error))
                else:
                    hint = cluster.submit_held(start, key, after if cluster.holds else "")
            case r.Release():
                self._log(claim, "held → release", step.reason, new=native_id(step.incarnation))
                hint = cluster.release(step.incarnation, key)
            case _:
                if not step.key:
                    note_cancellation(self._desk.state_directory, step.incarnation)
                self._log(
                    claim, f"{'held' if step.key else view.old.word.lower() or 'live'} → cancel", step.reason
                )
                hint = cluster.cancel(step.incarnation, step.key, force=step.force)
        failpoint("record")
        memory = r.answered(step.memory, hint)
        if hint.result == "refused":
            self._log(claim, "act → refused", hint.text)
        if memory != step.memory:
            self._keep(claim, memory)

    def _look(self, command: Command, cluster: Cluster, known: r.Memory) -> r.View:
        at, key = now_ms() / 1000, _key(command)
        jobs = cluster.sweep()
        ours = jobs.carrying(key)
        seen = any(job.native_id == known.winner for job in ours)
        return r.View(
            at=at,
            epoch=cluster.epoch(),
            holds=cluster.holds,
            old=self._old(command, cluster),
            ours=ours,
            winner=None if seen or not known.winner else cluster.state(_first_start(cluster, known.winner)),
            successor=self._successor(command, jobs.jobs, key, known),
        )

    def _old(self, command: Command, cluster: Cluster) -> StartState:
        """The state of the old start. On Ray a heartbeat may know better than the head."""
        state = cluster.state(command.incarnation)
        start = (
            self._desk.census.start_of(command.job, command.incarnation) if cluster.kind == "ray" else None
        )
        if start is None or start.alive_at is None:
            return state
        return r.with_heartbeat(state, time.monotonic() - start.alive_at)

    def _successor(self, command: Command, jobs: tuple[SchedulerJob, ...], key: str, known: r.Memory) -> str:
        """A later start of the job than the command's, made by somebody else; "" if there is none."""
        old = command.incarnation
        ours = {job.incarnation for job in jobs if job.effect_key == key}
        requeued = [
            job.incarnation
            for job in jobs
            if job.native_id == native_id(old) and job.incarnation != old and not job.state.over
        ]
        incarnations = self._desk.census.incarnations(command.job)
        later = incarnations[incarnations.index(old) + 1 :] if old in incarnations else ()
        others = [name for name in later if name not in ours and native_id(name) != known.winner]
        return next(iter([*requeued, *others]), "")

    def _keep(self, claim: Claim, memory: r.Memory) -> Claim | None:
        checkpoint = {name: claim.memory[name] for name in (*_CHECKPOINT, _SKIPPED) if name in claim.memory}
        return self._desk.claims.remember(replace(claim, memory={**checkpoint, **memory.words()}))

    def _finish(self, claim: Claim, step: r.Finish, cluster: Cluster, spec: Spec) -> float:
        """Ends the command. Returns the seconds until the next look, if its dependents cannot be seen yet."""
        command, dependents = claim.command, ""
        if step.result == "done" and step.incarnation:
            ids = (native_id(command.incarnation), native_id(step.incarnation))
            try:
                dependents = point_dependents(self._desk, cluster, spec, *ids)
            except ClusterUnreachable as error:
                self._log_once(claim, "blind → wait", error.what)
                return _BLIND_PAUSE_S
        state = {"done": "done", "expired": "expired"}.get(step.result, "failed")
        loaded = claim.memory if step.incarnation and claim.memory.get("checkpoint_step") else {}
        skipped = claim.memory.get(_SKIPPED, "") if step.incarnation else ""
        new = native_id(step.incarnation) if step.incarnation else ""
        outcome = final_outcome(
            command,
            state,
            "; ".join(filter(None, [step.reason, skipped, dependents])),
            new_native_id=new,
            new_incarnation=step.incarnation,
            checkpoint_step=int(loaded["checkpoint_step"]) if loaded else None,
            checkpoint="" if cluster.holds else loaded.get("checkpoint", ""),
            checkpoint_written_ms=int(loaded.get("checkpoint_written_ms") or 0),
            checkpoint_unit="epoch" if loaded.get("checkpoint_unit") == "epoch" else "step",
        )
        # The outcome goes out before the claim closes: a death in between sends it twice, which is harmless.
        self._desk.reporter.event(outcome, command=command)
        failpoint("close")
        self._desk.claims.close(command, outcome, release=step.untouched)
        now = time.monotonic()
        if cluster.holds and _key(command):
            finished = Finished(command, cluster, new, now + _DUPLICATES_S, now + _DUPLICATES_PAUSE_S)
            self._finished[_key(command)] = finished
        return 0.0

    def _sweep_duplicates(self, open_keys: set[str]) -> None:
        """Cancels duplicate jobs of finished commands. A slow submission may appear minutes later, held.

        Leaves out keys that an open command uses: the job may be that command's.
        """
        now = time.monotonic()
        self._finished = {k: v for k, v in self._finished.items() if v.until > now and k not in open_keys}
        for finished in self._finished.values():
            if finished.next_look > now:
                continue
            finished.next_look = now + _DUPLICATES_PAUSE_S
            key = _key(finished.command)
            try:
                late = r.late_duplicates(key, finished.winner, finished.cluster.sweep().jobs)
            except ClusterUnreachable:
                continue
            for incarnation in late:
                finished.cluster.cancel(incarnation, key)

    def _log_once(self, claim: Claim, change: str, reason: str) -> None:
        if self._logged_reasons.get(claim.command.id) != reason:
            self._logged_reasons[claim.command.id] = reason
            self._log(claim, change, reason)

    def _log(self, claim: Claim, change: str, reason: str, new: str = "") -> None:
        ids = (native_id(claim.command.incarnation), new or claim.memory.get("winner", ""))
        say(step_line(claim.command, now_ms(), change=change, ids=ids, reason=reason))


def _resume_point(spec: Spec) -> tuple[ResumePoint | None, str]:
    """The newest complete checkpoint now, or None; and why it is not a newer one, "" without any.

    A start on `local` is told to load it. A start that waits in a queue chooses for itself when it begins.
    """
    if not spec.checkpoint_directory:
        return None, ""
    point, notes = newest(Path(spec.checkpoint_directory))
    for note in notes:
        say(f"{spec.job}: {note}")
    skipped = "; ".join(notes)
    if point is None:
        skipped = f"no complete checkpoint in {spec.checkpoint_directory}: {skipped or 'there is none'}"
        return None, skipped[: _SKIPPED_CHARACTERS - len(_NO_CHECKPOINT)] + _NO_CHECKPOINT
    return point, skipped[:_SKIPPED_CHARACTERS]


def _words(point: ResumePoint | None) -> dict[str, str]:
    """The checkpoint as the claim remembers it."""
    if point is None:
        return {}
    words = (str(point.step), point.path, str(point.written_ms), point.unit)
    return dict(zip(_CHECKPOINT, words, strict=True))


def _without_checkpoint(memory: Mapping[str, str]) -> dict[str, str]:
    return {name: text for name, text in memory.items() if name not in (*_CHECKPOINT, _SKIPPED)}


def _start(
    spec: Spec, command: Command, resume: ResumePoint | None, *, chooses: bool, traces: bool
) -> StartSpec:
    """The start that follows the command's attempt. Raises ConfigurationError if its script has changed."""
    return start_spec(
        spec,
        attempt=command.attempt + 1,
        resume=None if chooses else resume,
        chooses=chooses,
        exclude_nodes=str(command.parameters.get("exclude", "")),
        trace=_trace(command) if traces else "",
    )


def _trace(command: Command) -> str:
    """The span of the command's effect, under which the new start's own spans hang."""
    effect = effect_span(command.incident, command.id)
    return traceparent(command.incident, effect) if command.incident else ""


def _key(command: Command) -> str:
    return effect_key(command.job, command.attempt, "start") if command.action == "restart" else ""


def _timing(cluster: Cluster) -> r.Timing:
    if cluster.kind == "ray":
        return r.RAY
    return r.SLURM if cluster.holds else r.LOCAL


def _first_start(cluster: Cluster, native: str) -> str:
    """The incarnation of our job's first start, for a job that the sweep does not show."""
    return f"{cluster.kind}:{native}:0"
