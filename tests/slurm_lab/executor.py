"""The smallest shell around the reconciler: one order, kept in a file, worked until it is finished."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from midwatch.agents.executor.reconcile import (
    Cancel,
    Finish,
    Memory,
    PendingCommand,
    Release,
    Remember,
    Step,
    Submit,
    Timing,
    View,
    Wait,
    answered,
    memory,
    next_step,
)
from midwatch.agents.schedulers.base import Cluster, ClusterUnreachable, Hint, StartSpec
from midwatch.streams.records.identity import native_id


@dataclass(slots=True)
class Shell:
    """`steps` is what was done, in order; `unreachable` counts looks without an answer."""

    cluster: Cluster
    order: PendingCommand
    spec: StartSpec
    timing: Timing
    file: Path
    before: Callable[[Step], object] = lambda _: None  # what a test does between keeping and acting
    steps: list[Step] = field(default_factory=list)
    unreachable: int = 0

    def work(self, seconds: float = 120, until: Callable[[Step], bool] | None = None) -> Step:
        """Goes on until the order is finished, or until a step that the caller waits for was done."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                step = self.one_pass()
            except ClusterUnreachable:
                self.unreachable += 1
                time.sleep(0.2)  # between two tries at a scheduler that is away, as the executor has it
                continue
            if isinstance(step, Finish) or (until and until(step)):
                return step
            if isinstance(step, Wait):
                time.sleep(min(step.seconds, 0.3))  # the step names its own pause, as the executor has it
        raise TimeoutError(f"not finished within {seconds:.0f} s: {self.steps[-3:]}")

    def one_pass(self) -> Step:
        known = memory(json.loads(self.file.read_text())) if self.file.exists() else Memory()
        step = next_step(self.order, known, self.look(known), self.timing)
        if not isinstance(step, Wait):
            self.steps.append(step)
        if isinstance(step, Remember | Submit | Release | Cancel):
            self.keep(step.memory)
        self.before(step)
        hint = self.act(step)
        if isinstance(step, Submit | Release) and hint:
            self.keep(answered(step.memory, hint))
        return step

    def look(self, known: Memory) -> View:
        cluster, order = self.cluster, self.order
        ours = cluster.find(order.start_key)
        gone = known.winner and known.winner not in [job.native_id for job in ours]
        winner = cluster.state(f"{cluster.kind}:{known.winner}:0") if gone else None
        old = cluster.state(order.old)
        return View(time.time(), cluster.epoch(), cluster.holds, old, ours, winner)

    def act(self, step: Step) -> Hint | None:
        match step:
            case Submit():
                return self.cluster.submit_held(self.spec, self.order.start_key, native_id(self.order.old))
            case Release():
                return self.cluster.release(step.incarnation, self.order.start_key)
            case Cancel():
                return self.cluster.cancel(step.incarnation, step.key, force=step.force)
            case _:
                return None

    def keep(self, known: Memory) -> None:
        draft = replace(known)
        self.file.write_text(json.dumps(draft.words()))
