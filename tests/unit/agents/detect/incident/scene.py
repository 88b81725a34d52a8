"""A job on a stage: nodes that beat and print in a time of their own making, folded by the real step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from midwatch.agents.decide.decision import Rulebook
from midwatch.agents.policies.loader import load_policy
from midwatch.agents.replay.pipeline import JobWatch, PipelineStep, step
from midwatch.rules.detectors.limits import WatchLimits
from midwatch.streams.records import (
    Command,
    Decision,
    Event,
    Finding,
    Heartbeat,
    Hit,
    Hits,
    Incident,
    IncidentRecord,
    Line,
    Mode,
    Outcome,
    Phase,
    Progress,
    Role,
    SchedulerFact,
    Shows,
    SpecEvent,
)
from midwatch.streams.records import Origin as RecordOrigin

JOB = "local:ada/llm"
FIRST = "local:100:1"
START_S = 1_000_000.0


@dataclass
class Scene:
    """Time is in seconds since the start; `say` appends an event at the present one."""

    nodes: tuple[str, ...] = ("n0",)
    incarnation: str = FIRST
    interval: float = 5.0
    policy: str = "verdict"
    limits: WatchLimits = field(
        default_factory=lambda: WatchLimits(training=60.0, evaluation=600.0, startup=300.0)
    )
    now: float = 0.0
    watch: JobWatch = field(default_factory=JobWatch)
    records: list[IncidentRecord] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    sequences: dict[str, int] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.book = Rulebook({self.policy: load_policy(self.policy)}, lambda c: c, self.policy, acting=True)

    def origin(self, node: str) -> RecordOrigin:
        return RecordOrigin(
            JOB, node, len(self.nodes), self.incarnation, "boot", f"{node}/{self.incarnation}"
        )

    def say(self, event: Event) -> PipelineStep:
        done = step(
            self.watch, JOB, event, int((START_S + self.now) * 1000), limits=self.limits, book=self.book
        )
        self.watch = done.watch
        self.records += done.records
        self.decisions += done.decisions
        self.commands += done.commands
        return done

    def spec(self, *, armed: bool = True, **fields: object) -> None:
        self.say(SpecEvent(JOB, "spec-hash", self.policy, armed, len(self.nodes), "/ckpt", **fields))  # type: ignore[arg-type]  # a test names only fields that exist

    def beat(self, node: str, *, made: float | None = None, **fields: object) -> None:
        """A beat made at `made` (now, if not told), arriving now."""
        made = self.now if made is None else made
        number = self.sequences[node] = self.sequences.get(node, 0) + 1
        values: dict[str, object] = {"at_end": True, "logged_ms": int((START_S + made) * 1000)} | fields
        self.say(
            Heartbeat(self.origin(node), number, START_S + made, made, self.interval, backlog=0, **values)  # type: ignore[arg-type]  # as above
        )

    def beats(self, *nodes: str, seconds: float) -> None:
        """The nodes beat at their interval for so long; nothing else happens."""
        until = self.now + seconds
        while self.now + self.interval <= until:
            self.now += self.interval
            for node in nodes or self.nodes:
                self.beat(node)

    def progress(
        self,
        step_number: int,
        *,
        node: str = "n0",
        phase: Phase = "training",
        loss: str = "",
        count: str = "",
        rule: str = "iteration",
        shows: Shows = "step",
        total: int | None = 1000,
    ) -> None:
        end = self._end(node)
        path = f"/logs/{node}.log"
        self.say(
            Hits(
                self.origin(node),
                "bundle",
                progress=(
                    Progress(
                        path,
                        node,
                        rule,
                        phase,
                        (step_number,),
                        (end,),
                        (end,),
                        (START_S + self.now,),
                        (loss,) if loss else (),
                        (count,) if count else (),
                        total=total,
                        last=Line(f"step {step_number}", path, end, end - 1, START_S + self.now, node),
                        shows=shows,
                    ),
                ),
                ends={node: end},
            )
        )

    def line(  # noqa: PLR0913  # what a line may say; each has its default
        self,
        error_type: str,
        *,
        role: Role = "cause",
        transient: bool | None = None,
        node: str = "n0",
        at: float | None = None,
        text: str = "",
        mode: Mode | None = None,
        subsystem: str = "test",
        captures: Mapping[str, str] | None = None,
    ) -> Hit:
        end = self._end(node)
        printed = START_S + (self.now if at is None else at)
        hit = Hit(
            f"rule_{error_type}",
            role,
            error_type,
            subsystem,
            "error",
            transient,
            Line(text or f"{error_type}!", f"/logs/{node}.log", end, end - 1, printed, node),
            end,
            node,
            mode,
            captures=captures or {},
        )
        self.say(Hits(self.origin(node), "bundle", hits=(hit,), ends={node: end}))
        return hit

    def ended(self, *, exit_code: int = 1, incarnation: str | None = None, **fields: object) -> None:
        values: dict[str, object] = {
            "mode": "success" if exit_code == 0 else "crash",
            "cluster": "local",
        } | fields
        self.say(
            SchedulerFact(
                JOB,
                incarnation or self.incarnation,
                "100",
                "running",
                "ended",
                True,
                exit_code=exit_code,
                **values,  # type: ignore[arg-type]  # as above
            )
        )

    def last_words(self, *nodes: str) -> None:
        for node in nodes or self.nodes:
            self.beat(node, final=True, alive=False)

    def accepted(self, command: Command) -> None:
        self.say(Outcome(JOB, command.id, command.attempt, "restart", "accepted", "ok"))

    def done(self, command: Command, new_incarnation: str) -> None:
        self.say(
            Outcome(
                JOB, command.id, command.attempt, "restart", "done", "ok", new_incarnation=new_incarnation
            )
        )

    def train(self, steps: range, *, node: str = "n0") -> None:
        """One step every second, beats in between."""
        for number in steps:
            self.now += 1
            self.progress(number, node=node)
            if number % int(self.interval) == 0:
                for each in self.nodes:
                    self.beat(each)

    def settled(self) -> list[Incident]:
        return [r for r in self.records if isinstance(r, Incident) and r.state == "settled"]

    def findings(self, kind: str) -> list[bool]:
        """Whether each finding of this kind opened (True) or cleared, in order."""
        return [r.open for r in self.records if isinstance(r, Finding) and r.kind == kind]

    def actions(self) -> list[str]:
        return [d.action for d in self.decisions]

    def _end(self, node: str) -> int:
        self.offsets[node] = self.offsets.get(node, 0) + 1
        return self.offsets[node]
